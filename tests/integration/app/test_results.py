"""Results are awaited, by signal."""

import asyncio
import threading

import pytest

from tests.integration.app.claimer import Hand, with_hand
from tidemill import JobCancelled, JobFailed, JobState, Keep, ResultGone, ResultTimeout, Tidemill, UnknownJob
from tidemill.engine.registry import connect
from tidemill.model.ids import new_id, show_id
from tidemill.model.jobs.job import CancelAnswer, Failure, ReplayAnswer
from tidemill.model.jobs.run import Completed, Failed, Outcome, Settlement, Stopped
from tidemill.task.catalogue import publish


def add(a: int, b: int) -> int:
    return a + b


async def settle_one(app: Tidemill, outcome: Outcome) -> None:
    async def work(hand: Hand) -> None:
        (job,) = await hand.take()
        await hand.settle(job, outcome)

    await with_hand(app, work)


@pytest.mark.every_engine
@pytest.mark.row("C6")
async def test_a_result_is_waited_for_and_typed(app: Tidemill) -> None:
    task = app.task(name="add")(add)
    job = await task.aenqueue(1, 2)
    waiting = asyncio.create_task(job.aresult(timeout=30))
    await settle_one(app, Completed(result=b"3"))
    assert await waiting == 3
    assert job.state is JobState.COMPLETED
    assert await job.aresult() == 3
    assert await app.job(job.id).aresult() == 3
    await app.aclose()


@pytest.mark.every_engine
def test_threads_wait_too(app: Tidemill) -> None:
    task = app.task(name="add")(add)
    job = task.enqueue(1, 2)
    results: list[int] = []
    threads = [threading.Thread(target=lambda: results.append(job.result(timeout=30))) for _ in range(5)]
    for thread in threads:
        thread.start()
    asyncio.run(settle_one(app, Completed(result=b"3")))
    for thread in threads:
        thread.join()
    assert results == [3] * 5


async def test_a_dead_job_raises_with_the_remote_traceback(app: Tidemill) -> None:
    job = await app.task(name="add")(add).aenqueue(1, 2)
    failure = Failure(error="ZeroDivisionError", message="by zero", traceback="Traceback: far away\n")
    await settle_one(app, Failed(failure=failure))
    with pytest.raises(JobFailed, match="far away") as caught:
        await job.aresult(timeout=30)
    assert caught.value.failure is not None
    assert (caught.value.failure.error, caught.value.failure.message) == ("ZeroDivisionError", "by zero")
    assert await job.areplay() is ReplayAnswer.REPLAYED
    assert (await job.ainfo()).state is JobState.READY
    await app.aclose()


@pytest.mark.row("B11")
async def test_a_cancelled_job_raises(app: Tidemill) -> None:
    job = await app.task(name="add")(add).aenqueue(1, 2)
    assert await job.acancel() is CancelAnswer.CANCELLED
    with pytest.raises(JobCancelled):
        await job.aresult(timeout=30)
    running = await app.task(name="add")(add).aenqueue(1, 2)

    async def work(hand: Hand) -> None:
        (job,) = await hand.take()
        assert await running.acancel() is CancelAnswer.ASKED
        await hand.settle(job, Stopped())

    await with_hand(app, work)
    with pytest.raises(JobCancelled):
        await running.aresult(timeout=30)
    assert await running.acancel() is CancelAnswer.CANCELLED
    await app.aclose()


async def test_a_wait_may_be_given_up_and_taken_up_again(app: Tidemill) -> None:
    job = await app.task(name="add")(add).aenqueue(1, 2)
    with pytest.raises(ResultTimeout, match="it goes on"):
        await job.aresult(timeout=0.01)
    with pytest.raises(TimeoutError):
        await job.aresult(timeout=0)
    await settle_one(app, Completed(result=b"3"))
    assert await job.aresult(timeout=30) == 3
    await app.aclose()


async def test_what_is_not_kept_cannot_be_given(app: Tidemill) -> None:
    app.queue("default", keep_body=False)
    app.queue("nothing", keep_completed=Keep(count=0))
    small = await app.task(name="add")(add).aenqueue(1, 2)
    gone = await app.task(name="add")(add).using(queue="nothing").aenqueue(1, 2)

    async def work(hand: Hand) -> None:
        await publish(hand.engine, app.registry, source="app", began=1)
        for job in await hand.take("default", "nothing"):
            await hand.settle(job, Completed(result=b"3"))

    await with_hand(app, work)
    for job in (small, gone):
        with pytest.raises(ResultGone):
            await job.aresult(timeout=30)
    with pytest.raises(UnknownJob):
        await app.job(show_id(new_id())).aresult(timeout=30)
    await app.aclose()


@pytest.mark.every_engine
async def test_a_thousand_waits_share_one_waiter(app: Tidemill) -> None:
    task = app.task(name="add")(add)
    jobs = await app.aenqueue_many(task.call(n, 0) for n in range(1_500))
    waits = asyncio.gather(*(job.aresult(timeout=60) for job in jobs))
    engine = await connect(app.url)
    hand = Hand(engine)
    while taken := await hand.take(most=500):
        assert all(job.body.startswith(b"[[") for job in taken)
        ended = [(job, Completed(result=job.body[2:].split(b",")[0])) for job in taken]
        await engine.jobs.settle([Settlement(id=job.id, fence=job.fence, outcome=end) for job, end in ended])
    assert await waits == list(range(1_500))
    await engine.close()
    await app.aclose()
