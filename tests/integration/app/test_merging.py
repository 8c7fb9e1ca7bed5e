"""Concurrent enqueues of an app: what reaches the engine in one call."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import uuid4

import pytest

from tidemill import Job, JobState, Tidemill
from tidemill.engine.merging import MERGED_BYTES, bytes_of
from tidemill.engine.protocol import BATCH_LIMIT, Engine
from tidemill.engine.registry import connect
from tidemill.model.errors import BadInput
from tidemill.model.jobs.job import NewJob, Stored

LARGE = "x" * (1_000_000)


class Sent:
    """What the app's engine was given, call by call."""

    def __init__(self) -> None:
        self.calls: list[list[NewJob]] = []
        self.engine: Engine | None = None

    @property
    def bytes(self) -> list[int]:
        return [bytes_of(jobs) for jobs in self.calls]

    @property
    def numbers(self) -> list[int]:
        return [
            int(job.body[2:].partition(b"]")[0].partition(b",")[0]) for jobs in self.calls for job in jobs
        ]


@pytest.fixture
async def sent(app: Tidemill, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Sent]:
    """From an app with an engine on this loop, which has made its first call. All calls of a `gather` are
    then handed over before the first batch of them is sent."""
    sent = Sent()

    async def recorded(*args: Any, **options: Any) -> Engine:
        sent.engine = engine = await connect(*args, **options)
        store = engine.jobs.enqueue

        async def enqueue(jobs: Sequence[NewJob], **options: Any) -> list[Stored]:
            sent.calls.append(list(jobs))
            return await store(jobs, **options)

        monkeypatch.setattr(engine.jobs, "enqueue", enqueue)
        return engine

    monkeypatch.setattr("tidemill.app.access.link.connect", recorded)
    async with app:
        await app.task(name="first")(take).aenqueue(0)
        sent.calls.clear()
        yield sent
    await app.aclose()


def take(number: int, text: str = "") -> None: ...


async def test_many_small_ones_are_few_calls(app: Tidemill, sent: Sent) -> None:
    task = app.task(name="t")(take)
    await asyncio.gather(*(task.aenqueue(number) for number in range(500)))
    assert len(sent.calls) == 1
    assert sent.numbers == list(range(500))


async def test_large_ones_are_merged_up_to_a_bound(app: Tidemill, sent: Sent) -> None:
    task = app.task(name="t")(take)
    jobs = await asyncio.gather(*(task.aenqueue(number, LARGE) for number in range(40)))
    assert max(sent.bytes) <= MERGED_BYTES
    assert [len(jobs) for jobs in sent.calls] == [16, 16, 8]
    assert sent.numbers == list(range(40))
    assert (await jobs[-1].ainfo()).state is JobState.READY


async def test_a_chunk_of_many_is_bounded_too(app: Tidemill, sent: Sent) -> None:
    task = app.task(name="t")(take)
    calls = [task.call(number, LARGE if number < 20 else "") for number in range(1_100)]
    jobs = await app.aenqueue_many(calls)
    assert max(sent.bytes) <= MERGED_BYTES
    assert [len(jobs) for jobs in sent.calls] == [16, BATCH_LIMIT, 84]
    assert sent.numbers == list(range(1_100)) == list(range(len(jobs)))


@pytest.mark.every_engine
async def test_jobs_of_every_form_go_together(app: Tidemill, sent: Sent) -> None:
    """Plain jobs, jobs for later, keyed and large ones, children; of two bad ones each fails alone."""
    task = app.task(name="t")(take)
    parent = await task.aenqueue(0)
    sent.calls.clear()
    kinds = [
        task,
        task.using(delay=3_600),
        task.using(key="k"),
        task.using(after=[parent]),
        task.using(expires=60),
    ]
    states = [JobState.READY, JobState.SCHEDULED, JobState.READY, JobState.BLOCKED, JobState.READY]
    turns = [number % len(kinds) for number in range(60)]
    jobs = await asyncio.gather(
        *(kinds[turn].aenqueue(number, LARGE[: number % 7 << 10]) for number, turn in enumerate(turns))
    )
    assert len(sent.calls) == 1
    assert sent.numbers == list(range(60))
    records = [await job.ainfo() for job in jobs]
    assert [record.state for record in records] == [states[turn] for turn in turns]
    assert [record.args for record in records] == [
        (number, LARGE[: number % 7 << 10]) for number in range(60)
    ]

    bad = task.using(after=[app.job(uuid4())])
    mixed = [bad if number in (3, 10) else kinds[number % len(kinds)] for number in range(20)]
    answers = await asyncio.gather(
        *(one.aenqueue(number) for number, one in enumerate(mixed)), return_exceptions=True
    )
    assert [number for number, answer in enumerate(answers) if isinstance(answer, BadInput)] == [3, 10]
    stored = [answer for answer in answers if isinstance(answer, Job)]
    assert len(stored) == 18
    for job in stored:
        assert (await job.ainfo()).task == "t"
