"""What never changes of a job that may run at once, as its producer packs it; `record.lua` keeps it so."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from struct import Struct
from typing import NamedTuple

import msgspec

from tidemill.engines.redis.db.pack import encode
from tidemill.model.jobs.job import NewJob
from tidemill.model.jobs.retry import Retry
from tidemill.model.plain import is_plain_job

_LENGTH = Struct(">I")
_length = _LENGTH.unpack_from
_HEAD = Struct(">xQQ")
_head = _HEAD.unpack_from
_TAIL = _HEAD.size
INLINE = 512
"""A longer body is kept apart from the record, which is written whole at every step."""


class Spec(msgspec.Struct, omit_defaults=True, frozen=True, gc=False):
    """By the names of a record's fields (moves.lua)."""

    t: str
    p: int
    co: int
    ma: int
    k: str | None = None
    to: int | None = None
    rt: str | None = None
    od: str | None = None
    sc: str | None = None


class Kept(NamedTuple):
    """The same, for a claim."""

    task: str
    queue: str
    priority: int
    codec: int
    attempts: int
    key: str | None
    timeout: int | None
    retry: Retry | None
    on_dead: str | None
    schedule: str | None


_decode = msgspec.msgpack.Decoder(Spec).decode
_retry = msgspec.json.Decoder(Retry).decode
_encode_json = msgspec.json.Encoder().encode


def plain(job: NewJob) -> bool:
    """Whether it can be stored in the short form."""
    return is_plain_job(job) and job.headers != b""  # which could not be told from none


def tails(jobs: Iterable[NewJob]) -> Iterator[tuple[NewJob, bytes]]:
    """Each with what is packed of it. Those of one call mostly differ in nothing but id and body."""
    last: NewJob | None = None
    tail = b""
    for job in jobs:
        if (
            last is None
            or job.task is not last.task
            or job.queue is not last.queue
            or job.priority is not last.priority
            or job.key is not last.key
            or job.headers is not last.headers
            or job.codec is not last.codec
            or job.timeout is not last.timeout
            or job.retry is not last.retry
            or job.attempts is not last.attempts
            or job.on_dead is not last.on_dead
            or job.schedule is not last.schedule
        ):
            tail, last = _tail(job), job
        yield job, tail


def _tail(job: NewJob) -> bytes:
    spec = encode(
        Spec(
            job.task, job.priority, job.codec, job.attempts, job.key or None, job.timeout,
            None if job.retry is None else _encode_json(job.retry).decode(), job.on_dead, job.schedule,
        )
    )  # fmt: skip
    queue = job.queue.encode()
    headers = job.headers or b""
    sizes = _LENGTH.pack(len(spec)), _LENGTH.pack(len(headers))
    return b"%c%b%b%b%b%b" % (len(queue), queue, sizes[0], spec, sizes[1], headers)


def inline(body: bytes) -> bool:
    """Whether a body is part of its record."""
    return 0 < len(body) <= INLINE


def read(records: Iterable[bytes]) -> Iterator[tuple[int, int, bytes, bytes | None, Kept]]:
    """Seq, the time of enqueue, body, headers, what was packed; of records as they were enqueued. Those of
    one claim mostly have the same tail, which has its own length in it: where it stands again, nothing of it
    is read anew (a claim's job takes 0.6 us instead of 1.1)."""
    tail, body, headers, kept = b"", 0, None, None
    for record in records:
        if kept is None or not record.startswith(tail, _TAIL):
            spec = _TAIL + 1 + record[_TAIL]
            end = spec + 4 + _length(record, spec)[0]
            body = end + 4 + _length(record, end)[0]
            tail, headers, kept = record[_TAIL:body], record[end + 4 : body] or None, _kept(record[_TAIL:end])
        seq, at = _head(record)
        yield seq, at, record[body:], headers, kept


@lru_cache(4_096)
def _kept(packed: bytes) -> Kept:
    start = 1 + packed[0]
    spec = _decode(packed[start + 4 :])
    return Kept(
        spec.t, packed[1:start].decode(), spec.p, spec.co, spec.ma, spec.k, spec.to,
        None if spec.rt is None else _retry(spec.rt), spec.od, spec.sc,
    )  # fmt: skip
