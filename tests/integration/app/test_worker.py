"""A worker inside the program: the whole way of a job, from the call to its result."""

import asyncio
import threading

import pytest

from tidemill import JobFailed, JobState, NoCurrentJob, Retry, Tidemill, current_job
from tidemill.model.errors import EngineClosed

NO_WAIT = Retry(attempts=3, base=0, jitter="none")


@pytest.mark.every_engine
@pytest.mark.row("A1", "A13")
async def test_jobs_run_and_their_results_come_back(app: Tidemill) -> None:
    @app.task
    async def on_the_loop(n: int) -> int:
        return n + 1

    @app.task
    def in_a_thread(n: int) -> str:
        return f"{n} in {threading.current_thread().name}"

    async with app.worker():
        jobs = [await on_the_loop.aenqueue(n) for n in range(5)]
        assert [await job.aresult(timeout=30) for job in jobs] == [1, 2, 3, 4, 5]
        assert (await (await in_a_thread.aenqueue(1)).aresult(timeout=30)).startswith("1 in tidemill-job")
        assert (await jobs[0].ainfo()).state is JobState.COMPLETED
    await app.aclose()


@pytest.mark.every_engine
@pytest.mark.row("A6", "C6")
async def test_a_job_that_fails_is_tried_again_and_then_dead(app: Tidemill) -> None:
    tries: list[int] = []

    @app.task(retry=NO_WAIT)
    async def fails_twice() -> int:
        tries.append(current_job().attempt)
        if len(tries) < 3:
            raise OSError("not yet")
        return len(tries)

    @app.task(retry=NO_WAIT)
    def fails_always() -> None:
        raise ValueError("never")

    async with app.worker():
        assert await (await fails_twice.aenqueue()).aresult(timeout=30) == 3
        assert tries == [1, 2, 3]
        job = await fails_always.aenqueue()
        with pytest.raises(JobFailed, match="ValueError: never"):
            await job.aresult(timeout=30)
        record = await job.ainfo()
        assert (record.state, record.attempts, len(record.failures)) == (JobState.DEAD, 3, 3)
        assert "fails_always" in record.failures[0].traceback
        assert "tidemill/worker" not in record.failures[0].traceback
    await app.aclose()


async def test_a_task_enqueues_others_on_the_loop_and_from_threads(app: Tidemill) -> None:
    @app.task
    async def leaf(n: int) -> int:
        return n

    @app.task
    async def on_the_loop() -> list[str]:
        return [job.id for job in await asyncio.gather(*(leaf.aenqueue(n) for n in range(3)))]

    @app.task
    def in_a_thread() -> list[str]:
        return [leaf.enqueue(n).id for n in range(3)]

    async with app.worker():
        for parent in (on_the_loop, in_a_thread):
            ids = await (await parent.aenqueue()).aresult(timeout=30)
            assert [await app.job(child).aresult(timeout=30) for child in ids] == [0, 1, 2]
    await app.aclose()


@pytest.mark.every_engine
@pytest.mark.row("C1")
async def test_running_code_knows_its_job(app: Tidemill) -> None:
    @app.task(name="t", queue="q", key="n")
    async def on_the_loop(n: int) -> dict[str, str]:
        job = current_job()
        job.progress(1, total=2, message="half")
        job.log.info("at %d", n)
        return {"id": job.id, "queue": job.queue, "key": str(job.key), "idempotency": job.idempotency_key}

    with pytest.raises(NoCurrentJob):
        current_job()
    async with app.worker():
        job = await on_the_loop.aenqueue(7)
        said = await job.aresult(timeout=30)
    assert said == {"id": job.id, "queue": "q", "key": "7", "idempotency": f"t:{job.id}"}
    if app.settings.url != "sqlite://":
        record = await job.ainfo()
        assert record.progress == {"done": 1, "total": 2, "message": "half"}
        assert record.member
    await app.aclose()


async def test_what_is_awaited_on_the_workers_loop_ends_with_it(app: Tidemill) -> None:
    @app.task
    async def never_claimed() -> None: ...

    async with app.worker(queues=["other"]):
        waiting = asyncio.create_task((await never_claimed.aenqueue()).aresult())
        await (await never_claimed.aenqueue()).ainfo()
    with pytest.raises(EngineClosed):
        await waiting
    await app.aclose()
