"""A task's signature: binds, checks and encodes arguments at enqueue, and decodes them in the worker.

The body is `[args, kwargs]`. Defaults are not stored: a job that waits takes those of the code that runs
it. Most calls have a few arguments of plain types, which are recognised without help (0.1 us); for
everything else the value is checked against its annotation, encoded, and decoded once as the worker will
do it, so that what passes here cannot fail there for its type.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, get_type_hints

import msgspec

from penstock.model.errors import BadArguments, BadInput, BadPayload, Unencodable
from penstock.task import codec

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
        self._signature = inspect.signature(function)
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
        function = inspect.unwrap(self._function)
        try:
            hints = get_type_hints(function, include_extras=True)
        except (NameError, TypeError) as error:
            raise BadInput(f"an annotation of {self._name} cannot be resolved: {error}") from None
        types = {name: hints.get(name, Any) for name in self._signature.parameters}
        for name, wanted in types.items():
            if not codec.knows(wanted):
                raise BadInput(
                    f"{self._name}: the type of {name!r}, {wanted}, has no JSON form; use plain types, a "
                    "dataclass, a msgspec Struct or a pydantic model"
                )
        return types

    @cached_property
    def _returns(self) -> Any:
        try:
            wanted = get_type_hints(inspect.unwrap(self._function), include_extras=True).get("return", Any)
        except (NameError, TypeError):
            return Any
        return wanted if codec.knows(wanted) else Any

    @cached_property
    def _certain(self) -> tuple[type | None, ...]:
        types = map(self._types.get, self.positional)
        return tuple(wanted if wanted in _CERTAIN else None for wanted in types)

    def check(self) -> None:
        """Resolve every annotation now, or `BadInput`."""
        _ = self._types

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
            self.decode(body)
        except BadPayload as error:
            raise BadArguments(str(error)) from None
        return body

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
            if codec.untyped(wanted):
                codec.check_plain(value)
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
        except (msgspec.DecodeError, ValueError, TypeError) as error:
            raise BadPayload(f"{self._name}: argument {name!r}: {error}") from None

    def argument(self, path: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> object:
        """The value of a parameter (dotted: of a field in it), or None."""
        name, *fields = path.split(".")
        if name in kwargs:
            value = kwargs[name]
        else:
            place = self.positional.index(name) if name in self.positional else len(args)
            value = args[place] if place < len(args) else self._default(name)
        for field in fields:
            value = value.get(field) if isinstance(value, dict) else getattr(value, field, None)
        return value

    def _default(self, name: str) -> Any:
        default = self._signature.parameters[name].default
        return None if default is inspect.Parameter.empty else default

    def has(self, name: str) -> bool:
        """Whether there is a parameter of this name."""
        return name in self._signature.parameters

    def decode_result(self, result: bytes | None) -> Any:
        """The value that the function returned, by its annotation."""
        return None if result is None else codec.decoder_of(self._returns)(result)

    def schema(self) -> bytes:
        """For those who do not have the code: the parameters in order, and their JSON types."""
        names = [name for name in self._types if name not in (self._more_args, self._more_kwargs)]
        try:
            parts, components = msgspec.json.schema_components([self._types[name] for name in names])
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
