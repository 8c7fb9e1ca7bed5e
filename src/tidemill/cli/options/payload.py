"""Arguments of a task on the command line: JSON given as it is, in a file (`@FILE`), or piped in (`-`)."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tidemill.model.errors import BadInput
from tidemill.model.jobs.job import PAYLOAD_LIMIT

READ_LIMIT = 4 * PAYLOAD_LIMIT
"""More than any payload may take once encoded; keeps a device or a wrong file from filling memory."""

_FORM = (
    "arguments are a JSON array (by position), a JSON object (by name), or one of each: "
    """'["a@b.c"]' '{"subject": "hi"}'"""
)


def arguments(given: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """Positional arguments from an array, keyword arguments from an object; one of each at most."""
    args: list[Any] | None = None
    kwargs: dict[str, Any] | None = None
    for text in given:
        value = _decoded(text)
        if isinstance(value, list) and args is None:
            args = value
        elif isinstance(value, dict) and kwargs is None:
            kwargs = value
        else:
            raise BadInput(_FORM)
    return args or [], kwargs or {}


def _decoded(text: str) -> Any:
    source = text if text == "-" or text.startswith("@") else ""
    try:
        return msgspec.json.decode(_read(text) if source else text.encode())
    except (msgspec.DecodeError, UnicodeDecodeError, UnicodeEncodeError) as error:
        shown = source or (text if len(text) <= 60 else text[:60] + "...")
        raise BadInput(f"{shown!r} is not JSON ({error}); {_FORM}") from None


def _read(text: str) -> bytes:
    if text == "-":
        content = sys.stdin.buffer.read(READ_LIMIT + 1) if sys.stdin is not None else b""
    else:
        try:
            with Path(text[1:]).open("rb") as file:
                content = file.read(READ_LIMIT + 1)
        except OSError as error:
            raise BadInput(f"{text[1:]} cannot be read: {error.strerror}") from None
    if len(content) > READ_LIMIT:
        raise BadInput(
            f"{text} holds more than {READ_LIMIT:,} bytes; a payload takes at most {PAYLOAD_LIMIT:,}"
        )
    return content
