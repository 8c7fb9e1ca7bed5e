"""A deploy that adds a task: workers that do not know it yet stand beside one that does."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from tests.integration.worker.workplace import Workplace
from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Answer, Release
from tidemill.model.member import MemberInfo


@pytest.fixture
async def newer(engine: Engine) -> AsyncIterator[Workplace]:
    """The worker of a newer release."""
    workplace = Workplace(engine)
    workplace.member = MemberInfo(id=new_id(), name="host:2")
    yield workplace
    await workplace.close()


def releases_of(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Counter[bytes]:
    """How often each job was released from now on."""
    counted: Counter[bytes] = Counter()
    right = engine.jobs.release

    async def release(releases: Sequence[Release], **options: Any) -> list[Answer]:
        answers = await right(releases, **options)
        counted.update(
            item.id for item, answer in zip(releases, answers, strict=True) if answer is Answer.APPLIED
        )
        return answers

    monkeypatch.setattr(engine.jobs, "release", release)
    return counted


async def settled(*workplaces: Workplace, times: int) -> None:
    """Wait until they have settled so many jobs together."""
    moments = [workplace.worker.moments for workplace in workplaces]
    while sum(each.count("settled") for each in moments) < times:
        waiting = [asyncio.ensure_future(each.next("settled")) for each in moments]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for each in waiting:
            each.cancel()


@pytest.mark.every_engine
async def test_each_job_of_a_new_task_is_passed_over_at_most_once(
    workplace: Workplace, newer: Workplace, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def known() -> None: ...

    async def added() -> int:
        return 7

    workplace.task(known)
    newer.task(known)
    newer.task(added)
    released = releases_of(engine, monkeypatch)
    await workplace.start()
    await workplace.idle()
    ids = []
    for _ in range(10):
        ids += await workplace.enqueue_many("known", times=5)
        ids += await workplace.enqueue_many("added", times=20)
    await newer.start()
    await settled(workplace, newer, times=len(ids))
    assert max(released.values(), default=0) <= 1, "a job came back to a worker that had met its task"
    assert len(released) <= 2 * 4 + 20, "one claim's worth was released: after it the task is named"
    assert workplace.worker.moments.count("released") == sum(released.values())
    for job_id in ids:
        job = await workplace.job(job_id)
        assert (job.attempts, job.due_at, job.reason) == (1, None, None)


async def test_a_paused_task_waits_and_goes_on_in_its_order(workplace: Workplace) -> None:
    ran: list[int] = []

    async def one(number: int) -> None:
        ran.append(number)

    workplace.task(one)
    await workplace.start(slots=1)
    await workplace.idle()
    await workplace.engine.tasks.pause("one", by="ann", why="too hot")
    ids = [await workplace.enqueue("one", number) for number in range(5)]
    await workplace.idle()
    assert set(await workplace.states(ids)) == {JobState.READY}
    await workplace.engine.tasks.resume("one", by="ann")
    await workplace.settled(5)
    assert ran == [0, 1, 2, 3, 4]
