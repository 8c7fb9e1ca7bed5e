"""Progress and log lines: buffered by running code, written under its fence, before the outcome."""

import asyncio
import threading

import msgspec
import pytest

from tests.integration.worker.outage import shaky
from tests.integration.worker.workplace import Workplace
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.retry import Retry
from tidemill.task.current import current_job
from tidemill.worker.running.notes import PENDING_LINES


@pytest.mark.every_engine
async def test_notes_are_written_before_the_outcome(workplace: Workplace) -> None:
    async def notes() -> None:
        job = current_job()
        job.log.info("first %d", 1)
        job.progress(1, total=2)
        job.log.warning("second")
        job.progress(2, total=2, message="done")

    workplace.task(notes)
    engine, jobs = shaky(workplace.engine)
    await workplace.start(engine=engine)
    job_id = await workplace.enqueue("notes")
    await workplace.settled()
    lines = await workplace.engine.inspect.log(job_id)
    assert [(line.level, line.message) for line in lines] == [("info", "first 1"), ("warning", "second")]
    progress = (await workplace.job(job_id)).progress
    assert progress is not None
    assert msgspec.json.decode(progress) == {"done": 2, "total": 2, "message": "done"}
    order = [name for name, _, _ in jobs.calls if name in ("write", "settle")]
    assert order == ["write", "settle"]


async def test_notes_of_a_thread_arrive_while_it_runs(workplace: Workplace) -> None:
    end = threading.Event()

    def notes() -> None:
        current_job().log.info("still here")
        end.wait()

    workplace.task(notes)
    engine, jobs = shaky(workplace.engine)
    written = asyncio.Event()
    write = jobs._jobs.write

    async def write_and_note(*args: object) -> object:
        answers = await write(*args)  # type: ignore[arg-type]
        written.set()
        return answers

    jobs.write = write_and_note  # type: ignore[attr-defined]
    await workplace.start(engine=engine)
    job_id = await workplace.enqueue("notes")
    await written.wait()
    assert await workplace.states([job_id]) == [JobState.RUNNING]
    assert [line.message for line in await workplace.engine.inspect.log(job_id)] == ["still here"]
    end.set()
    await workplace.settled()


@pytest.mark.every_engine
async def test_notes_survive_an_outage_and_are_written_once(workplace: Workplace) -> None:
    async def notes() -> None:
        for number in range(3):
            current_job().log.info("line %d", number)

    workplace.task(notes)
    engine, jobs = shaky(workplace.engine)
    jobs.fail("write", "before", "after")
    await workplace.start(engine=engine)
    job_id = await workplace.enqueue("notes")
    await workplace.settled()
    lines = await workplace.engine.inspect.log(job_id)
    assert [line.message for line in lines] == ["line 0", "line 1", "line 2"]


async def test_more_lines_than_the_bound_are_counted(workplace: Workplace) -> None:
    async def chatty() -> None:
        for number in range(PENDING_LINES + 25):
            current_job().log.info("line %d", number)

    workplace.task(chatty)
    await workplace.start()
    job_id = await workplace.enqueue("chatty")
    await workplace.settled()
    lines = await workplace.engine.inspect.log(job_id)
    assert len(lines) <= PENDING_LINES + 1
    assert "25 lines were dropped" in lines[-1].message


async def test_jobs_that_are_settled_together_have_their_notes_written_together(workplace: Workplace) -> None:
    full, end = asyncio.Event(), asyncio.Event()
    running = 0

    async def notes() -> None:
        nonlocal running
        running += 1
        if running == 200:
            full.set()
        await end.wait()
        current_job().log.info("done")
        current_job().progress(1)

    workplace.task(notes)
    engine, jobs = shaky(workplace.engine)
    await workplace.start(engine=engine, slots=200)
    ids = await workplace.enqueue_many("notes", times=200)
    await full.wait()
    end.set()
    await workplace.settled(200)
    assert len(jobs.of("write")) <= len(jobs.of("settle"))
    for job_id in (ids[0], ids[-1]):
        assert [line.message for line in await workplace.engine.inspect.log(job_id)] == ["done"]
        assert (await workplace.job(job_id)).progress is not None


async def test_a_line_that_does_not_fit_its_format_fails_no_job(workplace: Workplace) -> None:
    async def slips() -> None:
        current_job().log.info("%d rows", "many")

    workplace.task(slips)
    await workplace.start()
    job_id = await workplace.enqueue("slips")
    await workplace.settled()
    assert await workplace.states([job_id]) == [JobState.COMPLETED]
    assert [line.message for line in await workplace.engine.inspect.log(job_id)] == ["%d rows 'many'"]


@pytest.mark.every_engine
async def test_lines_that_no_engine_stores_are_spelled_out(workplace: Workplace) -> None:
    async def odd() -> None:
        current_job().log.info("a lone \udcff")
        current_job().log.info("x" * 100_000)

    workplace.task(odd)
    await workplace.start()
    job_id = await workplace.enqueue("odd")
    await workplace.settled()
    first, second = await workplace.engine.inspect.log(job_id)
    assert "udcff" in first.message
    assert len(second.message) < 10_000


async def test_a_failed_run_keeps_its_lines_and_the_next_one_adds_its_own(workplace: Workplace) -> None:
    async def fails_once() -> None:
        job = current_job()
        job.log.info("attempt %d", job.attempt)
        if job.attempt == 1:
            raise OSError

    workplace.task(fails_once, retry=Retry(attempts=2, base=0))
    await workplace.start()
    job_id = await workplace.enqueue("fails_once", attempts=2)
    await workplace.settled(2)
    lines = await workplace.engine.inspect.log(job_id)
    assert [line.message for line in lines] == ["attempt 1", "attempt 2"]


async def test_what_is_noted_after_the_end_goes_nowhere(workplace: Workplace) -> None:
    kept = []

    async def leaks() -> None:
        kept.append(current_job())
        current_job().log.info("in time")

    workplace.task(leaks)
    worker = await workplace.start()
    job_id = await workplace.enqueue("leaks")
    await workplace.settled()
    kept[0].log.info("too late")
    await worker._notebook.flush(list(worker._notebook._news))
    assert [line.message for line in await workplace.engine.inspect.log(job_id)] == ["in time"]
    assert not worker._notebook._pages
