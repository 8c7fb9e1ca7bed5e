"""Values to JSON and back, by type. Never pickle.

msgspec does the work: datetime, UUID, Decimal, bytes, enums, dataclasses and Structs have a JSON form
and come back by annotation, and so do paths. Pydantic models join by duck typing, so that pydantic is no
dependency.
A value whose type is not annotated must be plain JSON already. Whatever would come back as something else
(a datetime in a field that says nothing, a subclass where its base is annotated) is refused.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from datetime import datetime
from functools import lru_cache
from math import isfinite
from pathlib import PurePath
from typing import Any

import msgspec

from tidemill.model.errors import Unencodable
from tidemill.model.names import qualified_name

JSON = 1
"""The codec number of plain JSON; 2 is kept for encrypted JSON."""

_PLAIN_DEPTH = 100
_SCALARS = frozenset({str, int, bool, float, type(None)})
_NO_EQ: object = object.__eq__


def _to_json(value: Any) -> Any:
    """Paths and pydantic models; everything else is refused by type."""
    if isinstance(value, PurePath):
        return str(value)
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return _dump(dump)
    raise Unencodable(
        f"a {type(value).__module__}.{type(value).__qualname__} has no JSON form: pass plain values, a "
        "dataclass, a msgspec Struct or a pydantic model"
    )


def _dump(dump: Callable[..., Any]) -> Any:
    """In the form that `model_validate` takes: by alias, and without computed fields."""
    try:
        return dump(mode="json", by_alias=True, round_trip=True)
    except TypeError:  # made like pydantic's, with fewer options
        return dump(mode="json")


def _from_json(wanted: Any, value: Any) -> Any:
    if isinstance(wanted, type) and issubclass(wanted, PurePath) and not isinstance(value, wanted):
        if not isinstance(value, str):
            raise TypeError(f"Expected `{wanted.__qualname__}`, got `{type(value).__qualname__}`")
        return wanted(value)
    validate = getattr(wanted, "model_validate", None)
    if callable(validate):
        return validate(value)
    try:
        fits = isinstance(value, wanted)
    except TypeError:  # Iterable[int]
        fits = False
    if fits:
        return value
    name = getattr(wanted, "__qualname__", wanted)
    raise TypeError(f"{name} cannot be made from JSON: annotate a type that can, such as list[int]")


_encoder = msgspec.json.Encoder(enc_hook=_to_json)


def encode(value: object) -> bytes:
    """The JSON of a value, or `Unencodable`."""
    try:
        return _encoder.encode(value)
    except (TypeError, OverflowError, RecursionError, ValueError) as error:
        if isinstance(error, Unencodable):
            raise
        raise Unencodable(f"a {type(value).__qualname__} cannot be encoded: {error}") from None


_canonical = msgspec.json.Encoder(enc_hook=_to_json, order="deterministic")


def canonical(value: object) -> bytes:
    """JSON in which equal values are equal bytes: members of sets and keys of dicts are sorted."""
    return _canonical.encode(value)


def encode_as(value: object, wanted: Any) -> bytes:
    """The JSON of a result that comes back the same by this type, or `Unencodable`. Without a type a tuple
    comes back as a list: refusing `return a, b` would let a job die whose work was done."""
    if is_open(wanted):
        check_plain(value, tuples=True)
        return encode(value)
    try:
        convert(value, wanted)
        body = encode(value)
        check_same(value, decoder_of(wanted)(body))
    except Unencodable:
        raise
    except (msgspec.DecodeError, ValueError, TypeError) as error:
        raise Unencodable(str(error)) from None
    return body


@lru_cache(4_096)
def decoder_of(wanted: Any) -> Callable[[bytes | msgspec.Raw], Any]:
    """Decodes JSON into a type; `msgspec.ValidationError` where it does not fit."""
    return msgspec.json.Decoder(wanted, dec_hook=_from_json).decode


def convert(value: object, wanted: Any) -> object:
    """Check a Python value against a type; `msgspec.ValidationError` says where it does not fit."""
    return msgspec.convert(value, wanted, dec_hook=_from_json)


def schema_of(wanted: Any) -> dict[str, Any]:
    """The JSON Schema of a type that msgspec has none for; `TypeError` if that is not known here either."""
    if isinstance(wanted, type) and issubclass(wanted, PurePath):
        return {"type": "string", "format": "path"}
    raise TypeError(f"{wanted!r} has no JSON Schema")


def why_not(wanted: Any) -> str | None:
    """Why values of this type cannot travel; None: they can."""
    try:
        decoder_of(wanted)
    except (TypeError, NameError) as error:  # NameError: a field's annotation that cannot be resolved
        return str(error)
    return None


def can_make(wanted: Any) -> bool:
    """Whether JSON can become this type: neither unknown to msgspec nor a class that only Python can make."""
    if why_not(wanted) is not None:
        return False
    info = msgspec.inspect.type_info(wanted)
    kinds = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    custom = (kind.cls for kind in kinds if isinstance(kind, msgspec.inspect.CustomType))
    return all(hasattr(kind, "model_validate") or issubclass(kind, PurePath) for kind in custom)


_PLAIN = (str, int, float, bool, list, tuple, dict, type(None))


def never_stored(wanted: Any) -> str | None:
    """The name of the type in `wanted` of which no value has a JSON form, if `wanted` can then not be
    stored at all; None where some value can be, or where it is not known."""
    try:
        info = msgspec.inspect.type_info(wanted)
    except (TypeError, NameError, ValueError):  # nothing that msgspec knows: NoReturn, some unions
        return None
    return _never_stored(info)


def _never_stored(info: msgspec.inspect.Type) -> str | None:
    kinds = msgspec.inspect
    match info:
        case kinds.CustomType(cls=cls):
            return None if _may_be_stored(cls) else qualified_name(cls)
        case kinds.UnionType(types=types):
            found = [_never_stored(kind) for kind in types]
            return " | ".join(filter(None, found)) if all(found) else None
        case kinds.CollectionType(item_type=item):  # of which only the empty one could be stored
            return _never_stored(item)
        case kinds.DictType(value_type=value):
            return _never_stored(value)
        case kinds.TupleType(item_types=items):
            return next(filter(None, map(_never_stored, items)), None)
        case _:
            return None


def _may_be_stored(cls: Any) -> bool:
    """A model, or a class that plain values are instances of (an ABC, a protocol). Asked of a class that
    says nothing, it may be."""
    if not isinstance(cls, type) or hasattr(cls, "model_dump") or issubclass(cls, PurePath):
        return True
    try:
        return any(issubclass(plain, cls) for plain in _PLAIN)
    except TypeError:  # a protocol with attributes
        return True


def takes_none(wanted: Any) -> bool:
    """Whether None is a value of this type."""
    try:
        return convert(None, wanted) is None
    except (msgspec.ValidationError, ValueError, TypeError):
        return False


def is_open(wanted: Any) -> bool:
    """Whether the annotation says nothing, so that only plain JSON comes back the same."""
    return wanted is Any or wanted is object


def check_plain(value: object, depth: int = 0, *, tuples: bool = False) -> None:
    """Refuse, by type, what JSON would bring back as something else. `tuples`: they may become lists."""
    if type(value) is float:
        if not isfinite(value):
            raise Unencodable(f"{value} has no JSON form")
    elif type(value) in _SCALARS:
        return
    elif depth > _PLAIN_DEPTH:
        raise Unencodable(f"nested more than {_PLAIN_DEPTH} levels deep")
    elif isinstance(value, list | tuple if tuples else list):
        for item in value:
            check_plain(item, depth + 1, tuples=tuples)
    elif isinstance(value, dict):
        for key, item in value.items():
            if type(key) is not str:
                raise Unencodable(f"a JSON object has strings as keys, not {type(key).__qualname__}")
            check_plain(item, depth + 1, tuples=tuples)
    else:
        raise Unencodable(
            f"a {type(value).__qualname__} would come back as something else: annotate it with its type"
        )


def check_same(given: object, found: object) -> None:
    """Refuse a value that came back from JSON as something else."""
    try:
        different = _difference(given, found)
    except RecursionError:
        different = "it is nested too deep to tell"
    if different is not None:
        what = different.removeprefix(": ")
        raise Unencodable(
            f"would come back as something else: {what}; annotate its own type, or pass plain values"
        )


def _difference(given: object, found: object) -> str | None:
    """Where a value that came back is not the one given (".when: a datetime as a str"), or None.

    `==` alone sees too little (a subclass whose base has an `__eq__`) and too much (objects without one). A
    plain value of which the annotation makes more (a str that becomes an Enum, a dict that becomes a Struct,
    a tuple that becomes a list) comes back as was requested."""
    kind: Any = type(given)
    if kind in _SCALARS:
        same = given == found or type(found) not in _SCALARS
    elif isinstance(given, list | tuple):
        if isinstance(found, list | tuple):
            return _in_items(given, found)
        same = not isinstance(found, Set) or _has_members(given, found)
    elif isinstance(given, dict):
        return _in_dict(given, found)
    elif isinstance(given, Set):
        same = isinstance(found, Set) and _has_members(given, found)
    elif (names := _fields(kind)) is not None:
        if type(found) is kind:
            return _in_fields(given, found, names)
        same = False
    else:
        same = _alike(given, found)
    return None if same else _change(given, found)


def _in_items(given: Sequence[Any], found: Sequence[Any], keys: Iterable[Any] | None = None) -> str | None:
    if _SCALARS.issuperset(map(type, given)) and [*given] == [*found]:
        return None  # long lists of plain values: 5 times faster than one by one
    if len(given) != len(found):
        return f": {len(given)} items as {len(found)}"
    for key, value, came in zip(keys or range(len(given)), given, found, strict=True):
        different = _difference(value, came)
        if different is not None:
            return f"[{key!r}]{different}"
    return None


def _in_dict(given: dict[Any, Any], found: Any) -> str | None:
    if isinstance(found, dict):
        keys = _in_items([*given], [*found])
        values = (*given.values(),), (*found.values(),)
        return _in_items(*values, given) if keys is None else f": its keys{keys}"
    kind: Any = type(found)
    for name in _fields(kind) or ():
        different = _difference(given[name], getattr(found, name, None)) if name in given else None
        if different is not None:
            return f".{name}{different}"
    return None


def _has_members(given: Iterable[Any], found: Set[Any]) -> bool:
    plain = (*_SCALARS, list, tuple, dict)
    return all(type(member) in plain or member in found for member in given)


@lru_cache(1_024)
def _fields(kind: type) -> tuple[str, ...] | None:
    """The names of what a record of this class holds; None: it is no record that is known here."""
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    if is_dataclass(kind):
        return tuple(field.name for field in dataclass_fields(kind))
    if hasattr(kind, "__attrs_attrs__"):
        return tuple(field.name for field in kind.__attrs_attrs__)
    if hasattr(kind, "model_dump") and isinstance(getattr(kind, "model_fields", None), dict):
        return (*kind.model_fields, "__pydantic_extra__")  # type: ignore[attr-defined]
    return None


def _in_fields(given: Any, found: Any, names: tuple[str, ...]) -> str | None:
    for name in names:
        different = _difference(getattr(given, name, None), getattr(found, name, None))
        if different is not None:
            return f".{name}{different}"
    return None


def _alike(given: Any, found: Any) -> bool:
    """A value without parts. The annotation may name a base of its class (`str` for a StrEnum): equal is
    enough, but for models, whose `==` may not see that a subclass was cut down to its base."""
    if type(given) is not type(found) and hasattr(given, "model_dump"):
        return False
    try:
        if given == found:
            return True
        # Two datetimes of different zones are never equal in the hour in which clocks are set back.
        decides = type(given).__eq__ is not _NO_EQ and not isinstance(given, datetime)
    except Exception:  # arrays
        decides = False
    return not decides and type(given) is type(found) and _encodes_alike(given, found)


def _encodes_alike(given: object, found: object) -> bool:
    try:
        return encode(given) == encode(found)
    except Unencodable:  # it travels as part of a model, which knows how; whether it changed is not known
        return True


def _change(given: object, found: object) -> str:
    if type(given) is type(found):
        return f": a {type(given).__qualname__} of another value"
    return f": a {type(given).__qualname__} as a {type(found).__qualname__}"
