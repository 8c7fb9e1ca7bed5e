"""Job ids: UUIDv7, made by the producer.

At the seam an id is its 16 bytes (building `UUID` objects costs 2 microseconds each); people see
the usual dashed form. The time in an id serves locality in indexes and nothing else: order comes
from `seq` alone.
"""

import os
import time
from typing import TypeAlias
from uuid import UUID

from tidemill.model.errors import BadInput
from tidemill.model.time import Instant

JobId: TypeAlias = bytes

ID_SIZE = 16
"""Bytes of an id."""

_VERSION_7 = 0x7 << 76
_VARIANT = 0x2 << 62


def new_id() -> JobId:
    """A fresh UUIDv7: 48 bits of Unix milliseconds, 74 random bits."""
    try:
        noise = _noise.pop()
    except IndexError:
        _draw_noise()
        noise = _noise.pop()
    return (time.time_ns() // 1_000_000 << 80 | noise).to_bytes(16, "big")


def _draw_noise() -> None:
    """Random parts are drawn 1,000 at a time: 0.6 us an id instead of 2. Drawing lets go of the interpreter:
    100 at a time, a bulk enqueue took 12 us a job, waiting for it after each; now it takes 8."""
    drawn, number = os.urandom(10 * _DRAWN), int.from_bytes
    _noise.extend([
        number(drawn[start : start + 10], "big") & _RANDOM | _FIXED for start in range(0, 10 * _DRAWN, 10)
    ])  # fmt: skip


_FIXED = _VERSION_7 | _VARIANT
_RANDOM = ~(0xF << 76 | 0x3 << 62)
_DRAWN = 1_000
_noise: list[int] = []
os.register_at_fork(after_in_child=_noise.clear)  # else parent and child would make the same ids


def id_at(moment: Instant, rest: bytes) -> JobId:
    """The UUIDv7 with this moment's milliseconds and these 10 bytes (6 of their 80 bits give way)."""
    noise = int.from_bytes(rest, "big")
    high = (noise >> 68) << 64
    low = noise & ((1 << 62) - 1)
    value = ((moment // 1_000) & 0xFFFF_FFFF_FFFF) << 80 | _VERSION_7 | high | _VARIANT | low
    return value.to_bytes(16, "big")


def handler_id(dead: JobId, number: int) -> JobId:
    """The id of the job that handles a death: a UUIDv8, made of the dead job's by what every engine can
    reckon, and never that one itself. The number is that of the job's replays, so that the death after a
    replay has another; or the first after it whose id is free, where the dead job's own id has been used
    before, for a job that is forgotten while its handler is kept."""
    mixed = (int.from_bytes(dead[6:8], "big") ^ number) & 0xFFF
    last = dead[14] ^ number >> 12 & 0xFF, dead[15] ^ 0xFF
    return dead[:6] + (0x8000 | mixed).to_bytes(2, "big") + dead[8:14] + bytes(last)


def parse_id(text: str | UUID | bytes) -> JobId:
    """The id that a client gave, in any of its forms."""
    if isinstance(text, UUID):
        return text.bytes
    if isinstance(text, bytes):
        return check_id(text)
    try:
        return UUID(text).bytes
    except (ValueError, AttributeError, TypeError):
        raise BadInput(f"a job id is a UUID such as {show_id(new_id())}, not {text!r}") from None


def check_id(job_id: JobId) -> JobId:
    """The same 16 bytes, or `BadInput`."""
    if not isinstance(job_id, bytes) or len(job_id) != ID_SIZE:
        raise BadInput(f"a job id is 16 bytes, not {job_id!r}")
    return job_id


def show_id(job_id: JobId) -> str:
    """The dashed form that people read."""
    text = job_id.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
