"""MessagePack, as the scripts read it."""

from typing import Any

import msgspec

from tidemill.model.errors import BadInput

_encode = msgspec.msgpack.Encoder().encode


def encode(values: Any) -> bytes:
    """Packed; `BadInput` where a value has no form (a lone surrogate, a number beyond 64 bits)."""
    try:
        return _encode(values)
    except (UnicodeError, OverflowError, TypeError) as error:
        raise BadInput(f"a value cannot be stored: {str(error)[:200]}") from None
