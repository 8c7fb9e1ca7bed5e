"""Values to JSON and back, by type. Never pickle.

msgspec does the work: datetime, UUID, Decimal, bytes, enums, dataclasses and Structs have a JSON form
and come back by annotation. Pydantic models join by duck typing, so that pydantic is no dependency.
A value whose type is not annotated must be plain JSON already: it would come back as something else.
"""

from collections.abc import Callable
from functools import lru_cache
from math import isfinite
from typing import Any, get_args, get_origin

import msgspec

from penstock.model.errors import Unencodable

JSON = 1
"""The codec number of plain JSON; 2 is kept for encrypted JSON."""

_PLAIN_DEPTH = 100
_SCALARS = (str, int, bool, type(None))


def _to_json(value: Any) -> Any:
    """Pydantic models; everything else is refused by type."""
    dump = getattr(value, "model_dump", None)
    if callable(dump) and not isinstance(value, type):
        return dump(mode="json")
    raise Unencodable(
        f"a {type(value).__module__}.{type(value).__qualname__} has no JSON form: pass plain values, a "
        "dataclass, a msgspec Struct or a pydantic model"
    )


def _from_json(wanted: type, value: Any) -> Any:
    validate = getattr(wanted, "model_validate", None)
    if callable(validate):
        return validate(value)
    if isinstance(value, wanted):
        return value
    raise TypeError(f"{wanted.__qualname__} cannot be made from JSON")


_encoder = msgspec.json.Encoder(enc_hook=_to_json)


def encode(value: object) -> bytes:
    """The JSON of a value, or `Unencodable`."""
    try:
        return _encoder.encode(value)
    except (TypeError, OverflowError, RecursionError, ValueError) as error:
        if isinstance(error, Unencodable):
            raise
        raise Unencodable(f"a {type(value).__qualname__} cannot be encoded: {error}") from None


@lru_cache(4_096)
def decoder_of(wanted: Any) -> Callable[[bytes | msgspec.Raw], Any]:
    """Decodes JSON into a type; `msgspec.ValidationError` where it does not fit."""
    return msgspec.json.Decoder(wanted, dec_hook=_from_json).decode


def convert(value: object, wanted: Any) -> object:
    """Check a Python value against a type; `msgspec.ValidationError` says where it does not fit."""
    return msgspec.convert(value, wanted, dec_hook=_from_json)


def knows(wanted: Any) -> bool:
    """Whether values of this type can travel at all."""
    try:
        decoder_of(wanted)
    except TypeError:
        return False
    return True


def untyped(wanted: Any) -> bool:
    """Whether the annotation leaves some part open, so that only plain JSON comes back the same."""
    if wanted is Any or wanted is object or get_origin(wanted) is None:
        return wanted in (Any, object, list, dict, tuple)
    return any(untyped(part) for part in get_args(wanted) if part is not Ellipsis)


def check_plain(value: object, depth: int = 0) -> None:
    """Refuse, by type, what JSON would bring back as something else. A tuple becomes a list."""
    if type(value) in _SCALARS:
        return
    if depth > _PLAIN_DEPTH:
        raise Unencodable(f"nested more than {_PLAIN_DEPTH} levels deep")
    if type(value) is float:
        if not isfinite(value):
            raise Unencodable(f"{value} has no JSON form")
    elif isinstance(value, list | tuple):
        for item in value:
            check_plain(item, depth + 1)
    elif isinstance(value, dict):
        for key, item in value.items():
            if type(key) is not str:
                raise Unencodable(f"a JSON object has strings as keys, not {type(key).__qualname__}")
            check_plain(item, depth + 1)
    else:
        raise Unencodable(
            f"a {type(value).__qualname__} would come back as something else: annotate the parameter with "
            "its type"
        )
