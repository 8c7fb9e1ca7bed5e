"""A task's signature: binds, checks and encodes arguments at enqueue, and decodes them in the worker.

The body is `[args, kwargs]`. Defaults are not stored: a job that waits takes those of the code that runs
it. Most calls have a few arguments of plain types, which are recognised without help (0.1 us); for
everything else the value is checked against its annotation, encoded, decoded once as the worker will do it,
and compared, so that what passes here neither fails there for its type nor arrives as something else.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, repeat
from typing import Any, get_type_hints

import msgspec

from tidemill.model.errors import BadArguments, BadInput, BadPayload, Unencodable
from tidemill.task import codec

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_CERTAIN = frozenset({str, int, bool})
"""A value whose very type is its annotation needs no further check."""
_NO_KWARGS: dict[str, Any] = {}
_encode = msgspec.json.Encoder().encode
_raw_body = msgspec.json.Decoder(tuple[list[msgspec.Raw], dict[str, msgspec.Raw]]).decode


class Signature:
    """The parameters of one function."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self._name = name
        self._function = function
        try:
            self._signature = _signature_of(function)
        except (ValueError, TypeError) as error:
            raise BadInput(f"{name}: its parameters are not known ({error}): wrap it in a function") from None
        parameters = list(self._signature.parameters.values())
        self.positional = [p.name for p in parameters if p.kind in _POSITIONAL]
        self.required = [p.name for p in parameters if _is_required(p)]
        self._positional_only = sum(p.kind is inspect.Parameter.POSITIONAL_ONLY for p in parameters)
        self._more_args = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
        self._more_kwargs = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), None)
        self._least = sum(name in self.required for name in self.positional)
        self._only_positional = len(self.required) == self._least  # no keyword is needed to call it
        self._likely: Callable[[bytes], tuple[tuple[Any, ...], dict[str, msgspec.Raw]]] | None = None

    @cached_property
    def _types(self) -> dict[str, Any]:
        """Annotations, resolved on first use: they may name classes that are defined further down."""
        parameters = self._signature.parameters
        try:
            hints = self._resolve({name: parameter.annotation for name, parameter in parameters.items()})
        except Exception as error:  # they are code: whatever that raises
            raise BadInput(f"an annotation of {self._name} cannot be resolved: {error}") from None
        for name, wanted in hints.items():
            if (reason := codec.why_not(wanted)) is not None:
                raise BadInput(
                    f"{self._name}: the type of {name!r} cannot travel as JSON: {reason}; use plain types, a "
                    "dataclass, a msgspec Struct or a pydantic model"
                )
        return {name: hints.get(name, Any) for name in parameters}

    @cached_property
    def _returns(self) -> Any:
        """The type of results. One that cannot be known here, or cannot travel, says nothing."""
        try:
            wanted = self._resolve({"return": self._signature.return_annotation}).get("return", Any)
        except Exception:
            return Any
        return wanted if codec.can_make(wanted) else Any

    @cached_property
    def none_fits(self) -> bool:
        """Whether None is a result of the type that the function promises."""
        return codec.takes_none(self._returns)

    def _resolve(self, annotations: dict[str, Any]) -> dict[str, Any]:
        """Annotations as types. They are those of the signature, and not of the function: a wrapper takes
        part of its own from what it wraps, a partial from what it calls."""

        def holder() -> None: ...

        empty = inspect.Parameter.empty
        holder.__annotations__ = {name: kind for name, kind in annotations.items() if kind is not empty}
        names = getattr(_innermost(self._function), "__globals__", {})
        return get_type_hints(holder, globalns=names, include_extras=True)

    @cached_property
    def _certain(self) -> tuple[type | None, ...]:
        types = map(self._types.get, self.positional)
        return tuple(wanted if wanted in _CERTAIN else None for wanted in types)

    def is_annotated(self, name: str, wanted: type) -> bool:
        """Whether a parameter has exactly this type. Those of others, which may not be defined yet, are not
        looked at."""
        try:
            found = self._resolve({name: self._signature.parameters[name].annotation})
        except Exception:  # they are code: whatever that raises
            return False
        return found.get(name) is wanted

    def check(self) -> None:
        """Resolve every annotation now, or `BadInput`."""
        _ = self._types
        self.check_result_type()

    def check_result_type(self) -> None:
        """`BadInput` for a return type of which no value can be stored: better than a job that does its work
        and dies of its result. A type that cannot be known yet is looked at again by `check`."""
        try:
            wanted = self._resolve({"return": self._signature.return_annotation}).get("return", Any)
        except Exception:  # it is code: whatever that raises
            return
        if (found := codec.never_stored(wanted)) is not None:
            raise BadInput(
                f"{self._name}: its result, {found}, cannot travel as JSON: return plain values, a "
                "dataclass, a msgspec Struct or a pydantic model, or nothing (-> None)"
            )

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
        """The body of a call, or `BadArguments` / `Unencodable`."""
        if not kwargs and self._fits_certainly(args):
            try:
                return _encode((args, _NO_KWARGS))
            except ValueError:  # half a character; said properly below
                pass
        bound = self._bind(args, kwargs)
        for name, value in bound:
            self._check(name, value)
        body = codec.encode((args, kwargs))
        try:
            found = self.decode(body)
        except BadPayload as error:
            raise BadArguments(str(error)) from None
        self._compare(args, kwargs, *found)
        return body

    def _compare(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        found_args: Sequence[Any],
        found_kwargs: Mapping[str, Any],
    ) -> None:
        """Refuse arguments that the worker would get as something else."""
        positional = zip(chain(self.positional, repeat(self._more_args)), args, found_args, strict=False)
        keywords = ((name, value, found_kwargs[name]) for name, value in kwargs.items())
        for name, given, found in chain(positional, keywords):
            try:
                codec.check_same(given, found)
            except Unencodable as error:
                raise Unencodable(f"{self._name}: argument {name!r} {error}") from None

    def _fits_certainly(self, args: Sequence[Any]) -> bool:
        types = tuple(map(type, args))
        if types == self._certain:
            return self._only_positional
        enough = self._only_positional and self._least <= len(types) <= len(self._certain)
        return enough and types == self._certain[: len(types)]

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """(parameter, value) of every argument given."""
        try:
            arguments = self._signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            raise BadArguments(f"{self._name}{self._signature}: {error}") from None
        bound: list[tuple[str, Any]] = []
        for name, value in arguments.items():
            if name == self._more_args:
                bound += [(name, item) for item in value]
            elif name == self._more_kwargs:
                bound += [(name, item) for item in value.values()]
            else:
                bound.append((name, value))
        return bound

    def _check(self, name: str, value: object) -> None:
        wanted = self._types[name]
        try:
            if codec.is_open(wanted):
                codec.check_plain(value)
            else:
                codec.convert(value, wanted)
        except Unencodable as error:
            raise Unencodable(f"{self._name}: argument {name!r}: {error}") from None
        except (msgspec.ValidationError, ValueError, TypeError) as error:
            raise BadArguments(f"{self._name}: argument {name!r}: {error}") from None

    def decode(self, body: bytes) -> tuple[Sequence[Any], dict[str, Any]]:
        """Arguments by their annotations, or `BadPayload`."""
        if self._likely is not None:  # as many as last time, without keywords: one pass over the bytes
            try:
                args, raw = self._likely(body)
            except (msgspec.DecodeError, ValueError, TypeError):
                return self._decode_carefully(body)
            if not raw:
                return args, {}
        return self._decode_carefully(body)

    def _decode_carefully(self, body: bytes) -> tuple[Sequence[Any], dict[str, Any]]:
        try:
            args, raw = _raw_body(body)
        except (msgspec.DecodeError, ValueError) as error:
            raise BadPayload(f"{self._name}: the payload is not [args, kwargs] in JSON: {error}") from None
        decoded = self._decode_each(args, raw)
        if not raw and self._only_positional and self._least <= len(args) <= len(self.positional):
            types = tuple(self._types[name] for name in self.positional[: len(args)])
            self._likely = codec.decoder_of(tuple[tuple[types], dict[str, msgspec.Raw]])  # type: ignore[valid-type]
        return decoded

    def _decode_each(
        self, args: list[msgspec.Raw], raw: dict[str, msgspec.Raw]
    ) -> tuple[list[Any], dict[str, Any]]:
        try:
            self._signature.bind(*args, **raw)
        except TypeError as error:
            raise BadPayload(f"{self._name}{self._signature}: {error}") from None
        names = self.positional + [self._more_args or ""] * (len(args) - len(self.positional))
        positional = [self._decode_one(name, value) for name, value in zip(names, args, strict=False)]
        known = set(self._signature.parameters) - set(self.positional[: self._positional_only])
        keywords = {
            name: self._decode_one(name if name in known else self._more_kwargs or name, value)
            for name, value in raw.items()
        }
        return positional, keywords

    def _decode_one(self, name: str, value: msgspec.Raw) -> Any:
        try:
            return codec.decoder_of(self._types[name])(value)
        except (msgspec.DecodeError, ValueError, TypeError, RecursionError) as error:
            raise BadPayload(f"{self._name}: argument {name!r}: {error}") from None

    def argument(self, path: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> object:
        """The value of a parameter (dotted: of a field in it), or None."""
        name, *fields = path.split(".")
        if name in kwargs:
            value = kwargs[name]
        else:
            position = self.positional.index(name) if name in self.positional else len(args)
            value = args[position] if position < len(args) else self._default(name)
        for field in fields:
            value = value.get(field) if isinstance(value, dict) else getattr(value, field, None)
        return value

    def _default(self, name: str) -> Any:
        default = self._signature.parameters[name].default
        return None if default is inspect.Parameter.empty else default

    @cached_property
    def defaults(self) -> bytes:
        """JSON of the defaults, of those that have one."""
        found: dict[str, Any] = {}
        for name, parameter in self._signature.parameters.items():
            if parameter.default is not parameter.empty:
                try:
                    found[name] = msgspec.json.decode(codec.canonical(parameter.default))
                except (TypeError, ValueError, Unencodable, msgspec.DecodeError):
                    continue
        return codec.canonical(found)

    def named(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments that fit, by their parameters."""
        return dict(self._signature.bind(*args, **kwargs).arguments)

    def has(self, name: str) -> bool:
        """Whether there is a parameter of this name."""
        return name in self._signature.parameters

    def encode_result(self, value: object) -> bytes:
        """The JSON of what the function returned, or `Unencodable`."""
        wanted = self._returns
        if type(value) is wanted and wanted in _CERTAIN:
            return codec.encode(value)
        if inspect.iscoroutine(value):
            value.close()
            raise Unencodable("it is a coroutine: a function that wraps an async def must be one itself")
        return codec.encode_as(value, wanted)

    def decode_result(self, result: bytes | None) -> Any:
        """The value that the function returned, by its annotation."""
        return None if result is None else codec.decoder_of(self._returns)(result)

    def schema(self) -> bytes:
        """For those who do not have the code: the parameters in order, and their JSON types."""
        names = [name for name in self._types if name not in (self._more_args, self._more_kwargs)]
        try:
            types = [self._types[name] for name in names]
            parts, components = msgspec.json.schema_components(types, schema_hook=codec.schema_of)
        except TypeError:  # a custom type (a pydantic model) has no schema that msgspec knows
            parts, components = tuple({} for _ in names), {}
        return msgspec.json.encode({
            "type": "object",
            "properties": dict(zip(names, parts, strict=True)),
            "required": self.required,
            "positional": self.positional,
            "more": bool(self._more_args or self._more_kwargs),
            **({"$defs": components} if components else {}),
        })  # fmt: skip


def _is_required(parameter: inspect.Parameter) -> bool:
    variable = (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    return parameter.default is parameter.empty and parameter.kind not in variable


def _signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Names that are not defined yet are left as they are: since Python 3.14 they need no quotes."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def _innermost(function: Any) -> Any:
    """The function in which annotations were written: their names are looked up in its module."""
    while True:
        if isinstance(function, partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif hasattr(function, "__globals__") or inspect.isroutine(function):
            return function
        else:
            function = type(function).__call__
