"""A schedule as a row of a store: the same columns in every engine, each of a type that all of them have.

What stands for a whole record (timing, template, line, kept) is JSON with sorted keys: the same record is the
same text every time, so that engines may compare texts.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from tidemill.model.jobs.job import NewJob
from tidemill.model.schedules.schedule import Schedule, Timing
from tidemill.model.time import Instant

_encode = msgspec.json.Encoder(order="sorted").encode
_timing: msgspec.json.Decoder[Timing] = msgspec.json.Decoder(Timing)
_job = msgspec.json.Decoder(NewJob)
_ticks = msgspec.json.Decoder(tuple[Instant, ...])


class Says(NamedTuple):
    """What a schedule does: if one of these differs, its version grows."""

    timing: bytes
    job: bytes
    missed: str
    overlap: str
    waiting: int
    keep: int | None
    source: str


def says(schedule: Schedule) -> Says:
    """As it is stored and compared."""
    # a template's id means nothing: left out, it cannot make two equal schedules look different
    job = _encode(msgspec.structs.replace(schedule.job, id=bytes(16)))
    return Says(
        timing=_encode(schedule.timing),
        job=job,
        missed=schedule.missed,
        overlap=schedule.overlap,
        waiting=schedule.waiting,
        keep=schedule.keep,
        source=schedule.source,
    )


def encode_ticks(ticks: Sequence[Instant]) -> bytes:
    """A `line` or a `kept`, as it is stored."""
    return _encode(ticks)


def schedule_of(row: Sequence[Any]) -> Schedule:
    """From the columns: name, those of `Says`, declared_at, next_at, last_at, line, kept, paused,
    retired_at, version. Texts may come as bytes."""
    (
        name, timing, job, missed, overlap, waiting, keep, source, declared_at,
        next_at, last_at, line, kept, paused, retired_at, version,
    ) = row  # fmt: skip
    return Schedule(
        name=_text(name),
        timing=_timing.decode(timing),
        job=_job.decode(job),
        missed=_text(missed),  # type: ignore[arg-type]
        overlap=_text(overlap),  # type: ignore[arg-type]
        waiting=waiting,
        keep=keep,
        source=_text(source),
        declared_at=declared_at,
        next_at=next_at,
        last_at=last_at,
        line=_ticks.decode(line),
        kept=_ticks.decode(kept),
        paused=bool(paused),
        retired_at=retired_at,
        version=version,
    )


def _text(stored: str | bytes) -> str:
    return stored.decode() if isinstance(stored, bytes) else stored
