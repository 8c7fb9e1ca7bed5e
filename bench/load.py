"""Made-up jobs: no-ops with a body of 210 bytes."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

from bench.plan import BULK
from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import NewJob
from tidemill.model.time import Span

QUEUE = "default"
TASK = "noop"
BODY = b'[["' + b"x" * 202 + b'"],{}]'
RESULT = b"null"


def new_jobs(count: int, *, queue: str = QUEUE, key: str | None = None, delay: Span = 0) -> list[NewJob]:
    return [
        NewJob(id=new_id(), task=TASK, queue=queue, body=BODY, key=key, delay=delay) for _ in range(count)
    ]


def raw_jobs(count: int) -> list[tuple[bytes, bytes]]:
    return [(new_id(), BODY) for _ in range(count)]


T = TypeVar("T")


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]


async def fill(engine: Engine, jobs: Sequence[NewJob]) -> None:
    """Enqueue in bulk."""
    for chunk in chunks(jobs, BULK):
        await engine.jobs.enqueue(chunk)
