"""Jobs that cannot run here: unknown tasks, payloads that do not fit."""

import logging

import pytest

from tests.integration.worker.workplace import Workplace
from tidemill.engine.protocol import UNKNOWN_LIMIT
from tidemill.model.jobs.job import JobState
from tidemill.model.time import SECOND


async def test_jobs_of_an_unknown_task_stand_aside_and_use_no_attempt(
    workplace: Workplace, caplog: pytest.LogCaptureFixture
) -> None:
    await workplace.start()
    with caplog.at_level(logging.WARNING):
        ids = await workplace.enqueue_many("nobody.knows", times=3)
        await workplace.released(3)
    for job_id in ids:
        job = await workplace.job(job_id)
        assert (job.state, job.attempts, job.failure_count) == (JobState.READY, 0, 0)
        assert job.reason == "unknown task"
    assert workplace.held() == 0
    assert len([r for r in caplog.records if "no task 'nobody.knows' here" in r.getMessage()]) == 1


async def test_a_task_is_learnt_to_be_unknown_once(workplace: Workplace) -> None:
    """After the first of its jobs no claim takes another; what stands between them runs."""

    async def one() -> None: ...

    workplace.task(one)
    await workplace.start(slots=1)
    await workplace.enqueue("nobody.knows")
    await workplace.released(1)
    ids = await workplace.enqueue_many("nobody.knows", times=50)
    known = await workplace.enqueue_many("one", times=3)
    ids += await workplace.enqueue_many("nobody.knows", times=50)
    await workplace.settled(3)
    await workplace.idle()
    assert set(await workplace.states(known)) == {JobState.COMPLETED}
    for job_id in ids:
        job = await workplace.job(job_id)
        assert (job.state, job.reason, job.claimed_at) == (JobState.READY, "unknown task", None)


async def test_a_task_that_is_defined_later_is_taken_by_the_next_claim(workplace: Workplace) -> None:
    """As in a notebook: its worker runs while cells define tasks."""
    await workplace.start()
    early = await workplace.enqueue("late")
    await workplace.released(1)

    async def late() -> int:
        return 7

    workplace.task(late)
    await workplace.enqueue("late")
    await workplace.settled(2)
    assert (await workplace.job(early)).result == b"7"


async def test_more_unknown_tasks_than_a_claim_may_name_wait_for_a_while(workplace: Workplace) -> None:
    await workplace.start(slots=UNKNOWN_LIMIT + 2)
    ids = [await workplace.enqueue(f"t{number}") for number in range(UNKNOWN_LIMIT)]
    await workplace.released(UNKNOWN_LIMIT)
    assert set(await workplace.states(ids)) == {JobState.READY}
    job = await workplace.job(await workplace.enqueue("one.more"))
    await workplace.released(UNKNOWN_LIMIT + 1)
    job = await workplace.job(job.id)
    assert (job.state, job.reason) == (JobState.SCHEDULED, "unknown task")
    assert job.due_at is not None
    assert job.claimed_at is not None
    assert job.due_at - job.claimed_at >= 10 * SECOND


@pytest.mark.parametrize(
    "body", [b"not json", b"[]", b'[["x"],{}]', b"[[1,2],{}]", b"[[],{}]", b'[[1],{"more":2}]', b"\xff\xfe"]
)
async def test_a_payload_that_does_not_fit_is_dead_at_once(workplace: Workplace, body: bytes) -> None:
    async def one(number: int) -> int:
        return number

    workplace.task(one)
    await workplace.start()
    job_id = await workplace.enqueue("one", body=body)
    good = await workplace.enqueue("one", 7)
    await workplace.settled(2)
    job = await workplace.job(job_id)
    assert job.state is JobState.DEAD
    assert job.error is not None
    assert job.error.kind == "payload"
    assert (await workplace.job(good)).result == b"7"


async def test_an_unknown_codec_is_dead_at_once(workplace: Workplace) -> None:
    async def one() -> None: ...

    workplace.task(one)
    await workplace.start()
    job_id = await workplace.enqueue("one", codec=9)
    await workplace.settled()
    assert (await workplace.job(job_id)).state is JobState.DEAD


async def test_a_thousand_bad_payloads_do_not_nest(workplace: Workplace) -> None:
    async def one(number: int) -> None: ...

    workplace.task(one)
    await workplace.start(slots=400)
    ids = await workplace.enqueue_many("one", "no number", times=1_000)
    await workplace.settled(1_000)
    assert set(await workplace.states(ids)) == {JobState.DEAD}


async def test_tasks_and_queues_are_published(workplace: Workplace) -> None:
    async def one() -> None: ...

    workplace.task(one)
    await workplace.queue("mail", concurrency=3)
    await workplace.start()
    await workplace.idle()
    assert [entry.name for entry in await workplace.engine.tasks.list()] == ["one"]
    assert {queue.name for queue in await workplace.engine.queues.list()} >= {"mail"}
