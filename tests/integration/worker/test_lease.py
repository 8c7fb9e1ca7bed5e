"""The lease: nothing starts on the strength of an old heartbeat, and what was lost is not recorded."""

import asyncio
import threading

import pytest

from tests.integration.worker.workplace import Workplace
from tidemill.engine.boot import boot_ns
from tidemill.model.jobs.job import JobState
from tidemill.model.member import ClaimantHeartbeat
from tidemill.task.current import Abort, current_job
from tidemill.worker.member.stuck import StuckWatch


def run_out(workplace: Workplace) -> None:
    """The last good heartbeat is longer ago than the lease."""
    workplace.held_table.heartbeat_answered(boot_ns() - 3_600 * 10**9)
    workplace.worker._slots._fresh_until_ns = 0


async def test_nothing_is_claimed_before_a_heartbeat_was_answered(workplace: Workplace) -> None:
    async def works() -> None: ...

    workplace.task(works)
    job_id = await workplace.enqueue("works")
    worker = await workplace.start()
    run_out(workplace)
    worker._unsettled.claim_soon()
    assert worker._claims.request(anyway=True) is None
    await workplace.heartbeat()
    await workplace.settled()
    assert await workplace.states([job_id]) == [JobState.COMPLETED]


async def test_what_waits_starts_only_after_a_fresh_heartbeat(workplace: Workplace) -> None:
    ran: list[int] = []
    first, end = asyncio.Event(), asyncio.Event()

    async def works(number: int) -> None:
        ran.append(number)
        first.set()
        await end.wait()

    workplace.task(works)
    worker = await workplace.start(slots=1)
    await workplace.enqueue("works", 1)
    await first.wait()
    workplace.claim_ahead(1)
    await workplace.enqueue("works", 2)
    await worker.moments.reached("claimed", 2)
    run_out(workplace)
    end.set()
    await workplace.settled(1)
    assert (ran, workplace.held()) == ([1], 1)
    await workplace.heartbeat()
    await workplace.settled(2)
    assert ran == [1, 2]


async def forget(workplace: Workplace) -> None:
    """The engine gives everything that this worker holds to others."""
    mine = ClaimantHeartbeat(claimant=workplace.claimant, answered_through=1_000, held=())
    await workplace.engine.members.heartbeat(workplace.member, [mine])


async def test_a_job_that_was_lost_while_it_waited_is_not_started(workplace: Workplace) -> None:
    ran: list[int] = []
    first, end = asyncio.Event(), asyncio.Event()

    async def works(number: int) -> None:
        ran.append(number)
        first.set()
        await end.wait()

    workplace.task(works)
    worker = await workplace.start(slots=1)
    await workplace.enqueue("works", 1)
    await first.wait()
    workplace.claim_ahead(1)
    second = await workplace.enqueue("works", 2)
    await worker.moments.reached("claimed", 2)
    await workplace.engine.queues.pause("default")
    await forget(workplace)
    await workplace.heartbeat()
    assert workplace.held() == 1
    end.set()
    await workplace.settled()
    assert ran == [1]
    assert await workplace.states([second]) == [JobState.READY]


@pytest.mark.every_engine
@pytest.mark.row("D9")
async def test_a_lost_job_under_a_limit_is_stopped(workplace: Workplace) -> None:
    started = asyncio.Event()
    seen: list[Abort | None] = []

    async def works() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(current_job().aborted)

    workplace.task(works)
    await workplace.queue("narrow", concurrency=1)
    worker = await workplace.start()
    job_id = await workplace.enqueue("works", queue="narrow")
    await started.wait()
    await workplace.engine.queues.pause("narrow")
    await forget(workplace)
    (run,) = worker._slots.active.values()
    handle = run.handle
    await workplace.heartbeat()
    assert handle is not None
    await handle
    assert seen == [Abort.LOST]
    assert workplace.held() == 0
    job = await workplace.job(job_id)
    assert (job.state, job.attempts, job.failure_count) == (JobState.READY, 0, 0)


@pytest.mark.row("D9")
async def test_a_lost_job_under_a_limit_that_does_not_stop_is_stuck_as_after_a_timeout(
    workplace: Workplace, caplog: pytest.LogCaptureFixture
) -> None:
    """A thread has only a flag to see. Its supervisor finds it in the held table, and ends its process."""
    started, end = threading.Event(), threading.Event()

    def deaf() -> None:
        started.set()
        end.wait()

    workplace.task(deaf)
    await workplace.queue("narrow", concurrency=1)
    worker = await workplace.start(stuck_after_s=0.02)
    await workplace.enqueue("deaf", queue="narrow")
    await asyncio.to_thread(started.wait)
    (before,) = workplace.held_table.rows()
    assert (before.started_ns > 0, before.deadline_ns) == (True, 0)
    await workplace.engine.queues.pause("narrow")
    await forget(workplace)
    await workplace.heartbeat()
    (row,) = workplace.held_table.rows()
    assert row.started_ns == before.started_ns < row.deadline_ns <= boot_ns()
    watch = StuckWatch(after_s=0.0, grace_s=0.0)
    assert watch.check([row], boot_ns=boot_ns(), awake_ns=0) == {row.fence}
    await worker.moments.reached("stuck")
    assert worker._claims.request(anyway=True) is None
    end.set()
    await workplace.settled()
    assert worker.moments.count("refused") == 1
    logged = [record.getMessage() for record in caplog.records]
    assert any("does not stop" in line and "past its lease" in line for line in logged)


async def test_the_timeout_of_a_lost_job_does_not_wait_any_longer(workplace: Workplace) -> None:
    started, end = threading.Event(), threading.Event()

    def deaf() -> None:
        started.set()
        end.wait()

    workplace.task(deaf, timeout=3_600)
    await workplace.queue("narrow", concurrency=1)
    worker = await workplace.start(stuck_after_s=0.02)
    await workplace.enqueue("deaf", queue="narrow")
    await asyncio.to_thread(started.wait)
    await workplace.engine.queues.pause("narrow")
    await forget(workplace)
    await workplace.heartbeat()
    await worker.moments.reached("stuck")
    end.set()
    await workplace.settled()


@pytest.mark.every_engine
@pytest.mark.row("B6")
async def test_a_lost_job_without_a_limit_runs_on_and_its_outcome_is_refused(workplace: Workplace) -> None:
    started, end = asyncio.Event(), asyncio.Event()

    async def works() -> str:
        started.set()
        await end.wait()
        return f"aborted: {current_job().aborted}"

    workplace.task(works)
    worker = await workplace.start()
    job_id = await workplace.enqueue("works")
    await started.wait()
    await workplace.engine.queues.pause("default")
    await forget(workplace)
    await workplace.heartbeat()
    end.set()
    await workplace.settled()
    assert worker.moments.count("refused") == 1
    job = await workplace.job(job_id)
    assert (job.state, job.result) == (JobState.READY, None)


@pytest.mark.every_engine
async def test_a_heartbeat_between_claim_and_hold_takes_nothing_away(workplace: Workplace) -> None:
    """Heartbeats at every turn of the loop, while jobs come and go: none is ever released by mistake."""

    async def works() -> None:
        await asyncio.sleep(0)

    workplace.task(works)
    worker = await workplace.start(slots=8)
    ids = await workplace.enqueue_many("works", times=400)
    done = asyncio.ensure_future(workplace.settled(400))
    while not done.done():
        await workplace.heartbeat()
    assert set(await workplace.states(ids)) == {JobState.COMPLETED}
    assert worker.moments.count("refused") == 0
    assert {job.attempts for job in await workplace.engine.inspect.get(ids) if job} == {1}
