"""Jobs in processes, seen from the worker: what it asks of its runner, and what it makes of the answers."""

import asyncio
from collections.abc import Callable

import pytest

from tests.integration.worker.outage import shaky
from tests.integration.worker.workplace import Workplace
from tidemill.model.jobs.job import Failure, JobState
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.run import ClaimedJob, ClaimRequest, LostRun, Want
from tidemill.model.member import ClaimantHeartbeat, MemberInfo
from tidemill.task.current import Abort, ControlledJob
from tidemill.worker.runner.pool import AbortedRun, Killed, ProcessOutcome, Raised, Returned, RunnerCrashed

ONCE = Retry(attempts=1)


class Processes:
    """Stands in for processes: does what the test says."""

    def __init__(self) -> None:
        self.began: asyncio.Queue[tuple[ClaimedJob, ControlledJob, bool]] = asyncio.Queue()
        self.outcomes: asyncio.Queue[ProcessOutcome] = asyncio.Queue()
        self.stops: asyncio.Queue[tuple[int, Abort, bool]] = asyncio.Queue()

    async def run(
        self,
        job: ClaimedJob,
        running: ControlledJob,
        *,
        fresh: bool,
        began: Callable[[], None],
        between: tuple[int, int],
    ) -> ProcessOutcome:
        began()
        self.began.put_nowait((job, running, fresh))
        return await self.outcomes.get()

    def stop(self, fence: int, reason: Abort, *, kill: bool) -> None:
        self.stops.put_nowait((fence, reason, kill))
        if kill:
            self.outcomes.put_nowait(Killed())

    async def close(self) -> None: ...


def crunch() -> None:
    raise AssertionError("it runs in a process, not here")


@pytest.fixture
def processes() -> Processes:
    return Processes()


@pytest.mark.parametrize(
    ("outcome", "state", "kind"),
    [
        (Returned(b"7"), JobState.COMPLETED, None),
        (Raised(failure=Failure(error="OSError"), lineage=["OSError"]), JobState.DEAD, "error"),
        (Raised(failure=Failure(kind="payload"), lineage=[]), JobState.DEAD, "payload"),
        (RunnerCrashed("killed by SIGSEGV"), JobState.READY, "crash"),
    ],
    ids=["returned", "raised", "payload", "crashed"],
)
async def test_what_a_process_did_is_settled(
    workplace: Workplace, processes: Processes, outcome: ProcessOutcome, state: JobState, kind: str | None
) -> None:
    workplace.task(crunch, runs_in="process", retry=ONCE)
    await workplace.start(processes=processes)
    job_id = await workplace.enqueue("crunch", attempts=1)
    job, _, fresh = await processes.began.get()
    assert (job.id, fresh) == (job_id, False)
    assert [row.started_ns for row in workplace.held_table.rows()] == [0], "it cannot kill this process"
    await workplace.engine.queues.pause("default")
    processes.outcomes.put_nowait(outcome)
    await workplace.settled()
    record = await workplace.job(job_id)
    assert record.state is state
    assert (record.error.kind if record.error else None) == kind


async def test_past_its_timeout_its_process_is_killed(workplace: Workplace, processes: Processes) -> None:
    workplace.task(crunch, runs_in="process", retry=ONCE, timeout=0.02)
    await workplace.start(processes=processes)
    job_id = await workplace.enqueue("crunch", attempts=1)
    job, _, _ = await processes.began.get()
    assert await processes.stops.get() == (job.fence, Abort.TIMEOUT, True)
    await workplace.settled()
    error = (await workplace.job(job_id)).error
    assert error is not None
    assert error.kind == "timeout"


@pytest.mark.row("B11")
async def test_one_that_was_asked_to_stop_is_told_and_then_killed(
    workplace: Workplace, processes: Processes
) -> None:
    workplace.task(crunch, runs_in="process")
    await workplace.start(processes=processes, cancel_grace_s=0.02)
    job_id = await workplace.enqueue("crunch")
    job, _, _ = await processes.began.get()
    await workplace.engine.jobs.cancel([job_id])
    await workplace.heartbeat()
    assert await processes.stops.get() == (job.fence, Abort.CANCEL, False)
    assert await processes.stops.get() == (job.fence, Abort.CANCEL, True)
    await workplace.settled()
    assert await workplace.states([job_id]) == [JobState.CANCELLED]


@pytest.mark.row("B7")
@pytest.mark.parametrize("obedient", [True, False])
async def test_at_a_drains_deadline_it_is_signalled_then_killed_and_released(
    workplace: Workplace, processes: Processes, obedient: bool
) -> None:
    workplace.task(crunch, runs_in="process")
    worker = await workplace.start(processes=processes)
    job_id = await workplace.enqueue("crunch")
    job, _, _ = await processes.began.get()
    worker.drain(0)
    assert await processes.stops.get() == (job.fence, Abort.DRAIN, False)
    if obedient:
        processes.outcomes.put_nowait(AbortedRun(Abort.DRAIN))
    else:
        assert await processes.stops.get() == (job.fence, Abort.DRAIN, True)
    drained = await workplace.over()
    assert drained.released == 1
    record = await workplace.job(job_id)
    assert (record.state, record.attempts) == (JobState.READY, 0)


async def test_a_result_that_cannot_be_stored_is_no_effect_of_a_drain(
    workplace: Workplace, processes: Processes
) -> None:
    """Its work was done: released, it would be done again."""
    workplace.task(crunch, runs_in="process")
    worker = await workplace.start(processes=processes)
    job_id = await workplace.enqueue("crunch")
    await processes.began.get()
    worker.drain(0)
    await processes.stops.get()
    processes.outcomes.put_nowait(Raised(failure=Failure(kind="payload"), lineage=["Exception"]))
    await workplace.over()
    assert (await workplace.job(job_id)).state is JobState.DEAD


A_RAISE = Raised(failure=Failure(error="OSError"), lineage=["OSError", "Exception"])
EFFECTS: dict[str, ProcessOutcome] = {
    "died of the signal": RunnerCrashed("killed by signal 15 (SIGTERM)"),
    "exited": Raised(failure=Failure(error="SystemExit"), lineage=["SystemExit", "BaseException"]),
    "was interrupted": Raised(failure=Failure(error="KeyboardInterrupt"), lineage=["KeyboardInterrupt"]),
    "was cancelled": Raised(
        failure=Failure(error="CancelledError"),
        lineage=["asyncio.exceptions.CancelledError", "BaseException"],
    ),
    "raised Aborted": Raised(
        failure=Failure(error="Aborted"), lineage=["tidemill.task.current.Aborted", "Exception"]
    ),
}
"""How code may obey a SIGTERM of ours."""


@pytest.mark.row("B7")
@pytest.mark.parametrize("how", [*EFFECTS, "broke while it cleaned up"])
async def test_whatever_our_signal_does_at_a_drain_costs_the_job_nothing(
    workplace: Workplace, processes: Processes, how: str
) -> None:
    workplace.task(crunch, runs_in="process", retry=ONCE)
    worker = await workplace.start(processes=processes)
    job_id = await workplace.enqueue("crunch", attempts=1)
    await processes.began.get()
    worker.drain(0)
    assert (await processes.stops.get())[1:] == (Abort.DRAIN, False)
    processes.outcomes.put_nowait(EFFECTS.get(how, A_RAISE))
    assert (await workplace.over()).released == 1
    record = await workplace.job(job_id)
    assert (record.state, record.attempts, record.crashes) == (JobState.READY, 0, 0)
    assert record.failures == ()


@pytest.mark.row("B11")
@pytest.mark.parametrize("how", EFFECTS)
async def test_whatever_our_signal_does_to_a_cancelled_job_it_is_cancelled(
    workplace: Workplace, processes: Processes, how: str
) -> None:
    workplace.task(crunch, runs_in="process", retry=ONCE)
    await workplace.start(processes=processes, cancel_grace_s=None)
    job_id = await workplace.enqueue("crunch", attempts=1)
    await processes.began.get()
    await workplace.engine.jobs.cancel([job_id])
    await workplace.heartbeat()
    assert (await processes.stops.get())[1:] == (Abort.CANCEL, False)
    processes.outcomes.put_nowait(EFFECTS[how])
    await workplace.settled()
    record = await workplace.job(job_id)
    assert (record.state, record.crashes, record.failures) == (JobState.CANCELLED, 0, ())


@pytest.mark.parametrize("how", EFFECTS)
async def test_the_same_without_our_asking_is_its_own_doing(
    workplace: Workplace, processes: Processes, how: str
) -> None:
    workplace.task(crunch, runs_in="process", retry=ONCE)
    await workplace.start(processes=processes)
    job_id = await workplace.enqueue("crunch", attempts=1)
    await processes.began.get()
    await workplace.engine.queues.pause("default")
    processes.outcomes.put_nowait(EFFECTS[how])
    await workplace.settled()
    assert len((await workplace.job(job_id)).failures) == 1


@pytest.mark.row("B11")
async def test_an_error_of_a_cancelled_job_that_no_signal_explains_is_kept(
    workplace: Workplace, processes: Processes
) -> None:
    workplace.task(crunch, runs_in="process", retry=ONCE)
    await workplace.start(processes=processes, cancel_grace_s=None)
    job_id = await workplace.enqueue("crunch", attempts=1)
    await processes.began.get()
    await workplace.engine.jobs.cancel([job_id])
    await workplace.heartbeat()
    await processes.stops.get()
    processes.outcomes.put_nowait(A_RAISE)
    await workplace.settled()
    assert [failure.error for failure in (await workplace.job(job_id)).failures] == ["OSError"]


async def test_without_processes_it_is_released_for_others(workplace: Workplace) -> None:
    workplace.task(crunch, runs_in="process")
    await workplace.start()
    job_id = await workplace.enqueue("crunch")
    await workplace.released()
    assert await workplace.states([job_id]) == [JobState.SCHEDULED]


async def a_suspect(workplace: Workplace, count: int = 1) -> list[bytes]:
    """Jobs that were running together when a claimant died."""
    ids = await workplace.enqueue_many("works", times=count)
    jobs, other, claimant = workplace.engine.jobs, MemberInfo(id=b"m" * 16, name="other"), b"c" * 16
    await workplace.engine.members.heartbeat(
        other, [ClaimantHeartbeat(claimant=claimant, answered_through=0, held=())]
    )
    claim = await jobs.claim(
        ClaimRequest(member=other.id, claimant=claimant, number=1, wants=(Want("default"),), most=count)
    )
    lost_runs = [LostRun(id=job.id, fence=job.fence, verdict="suspect") for job in claim.jobs]
    await jobs.retire(claimant, lost_runs)
    return ids


@pytest.mark.every_engine
async def test_suspects_run_one_at_a_time_in_a_fresh_process_after_their_start_is_known(
    workplace: Workplace, processes: Processes
) -> None:
    async def works() -> None:
        raise AssertionError("a suspect does not run here")

    workplace.task(works)
    ids = await a_suspect(workplace, 2)
    engine, jobs = shaky(workplace.engine)
    jobs.fail("write", "before", "after")
    await workplace.start(engine=engine, processes=processes, takes_suspects=True)
    for _ in ids:
        job, _, fresh = await processes.began.get()
        assert fresh
        assert (await workplace.job(job.id)).started_at is not None
        assert [row.started_ns for row in workplace.held_table.rows()] == [0]
        processes.outcomes.put_nowait(Returned(None))
    await workplace.settled(2)
    assert await workplace.states(ids) == [JobState.COMPLETED] * 2


async def test_a_worker_that_takes_no_suspects_leaves_them(workplace: Workplace) -> None:
    async def works() -> None: ...

    workplace.task(works)
    (suspect,) = await a_suspect(workplace)
    await workplace.start()
    plain = await workplace.enqueue("works")
    await workplace.settled()
    await workplace.idle()
    assert await workplace.states([suspect, plain]) == [JobState.READY, JobState.COMPLETED]


async def test_a_suspect_that_is_no_longer_ours_is_not_run(
    workplace: Workplace, processes: Processes
) -> None:
    async def works() -> None: ...

    workplace.task(works)
    (suspect,) = await a_suspect(workplace)
    engine, jobs = shaky(workplace.engine)
    write = jobs._jobs.write

    async def too_late(*args: object) -> object:
        await workplace.engine.queues.pause("default")
        mine = ClaimantHeartbeat(claimant=workplace.claimant, answered_through=1_000, held=())
        await workplace.engine.members.heartbeat(workplace.member, [mine])
        return await write(*args)  # type: ignore[arg-type]

    jobs.write = too_late  # type: ignore[attr-defined]
    worker = await workplace.start(engine=engine, processes=processes, takes_suspects=True)
    await worker.moments.reached("claimed")
    (run,) = worker._slots.active.values()
    assert run.handle is not None
    await run.handle
    assert processes.began.empty()
    assert await workplace.states([suspect]) == [JobState.READY]
    assert workplace.held() == 0
