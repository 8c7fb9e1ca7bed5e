"""An engine that does not answer: nothing is lost, nothing runs twice beyond the contract."""

import asyncio
import random
from collections import Counter

import pytest

from tests.integration.worker.outage import When, shaky
from tests.integration.worker.workplace import Workplace
from tidemill.model.errors import ClaimantRetired, EngineUnavailable
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Completed
from tidemill.model.member import ClaimantHeartbeat
from tidemill.task.current import current_job
from tidemill.worker.backoff import Backoff

FAILING: list[tuple[When, ...]] = [("before",), ("after",), ("before", "after", "before")]


def counting(workplace: Workplace) -> Counter[JobId]:
    """A task that counts its own runs."""
    ran: Counter[JobId] = Counter()

    async def works() -> None:
        ran[current_job().job_id] += 1

    workplace.task(works)
    return ran


@pytest.mark.every_engine
@pytest.mark.parametrize("times", FAILING, ids="-".join)
async def test_a_claim_is_repeated_under_its_number(workplace: Workplace, times: tuple[When, ...]) -> None:
    ran = counting(workplace)
    engine, jobs = shaky(workplace.engine)
    ids = await workplace.enqueue_many("works", times=3)
    jobs.fail("claim", *times)
    await workplace.start(engine=engine)
    await workplace.settled(3)
    assert set(await workplace.states(ids)) == {JobState.COMPLETED}
    assert set(ran.values()) == {1}
    numbers = [args[0].number for args, _ in jobs.of("claim")][: len(times) + 1]
    assert numbers == [1] * (len(times) + 1)
    assert workplace.held() == 0


@pytest.mark.every_engine
@pytest.mark.parametrize("times", FAILING, ids="-".join)
async def test_a_settle_is_repeated_with_the_same_outcomes_and_claim(
    workplace: Workplace, times: tuple[When, ...]
) -> None:
    ran = counting(workplace)
    engine, jobs = shaky(workplace.engine)
    ids = await workplace.enqueue_many("works", times=12)
    jobs.fail("settle", *times)
    await workplace.start(engine=engine, slots=3)
    await workplace.settled(12)
    assert set(await workplace.states(ids)) == {JobState.COMPLETED}
    assert set(ran.values()) == {1}
    first, *repeats = jobs.of("settle")[: len(times) + 1]
    assert all(repeat == first for repeat in repeats)
    assert jobs.most_in_flight == 1


@pytest.mark.every_engine
@pytest.mark.parametrize("times", FAILING, ids="-".join)
async def test_a_release_is_repeated(workplace: Workplace, times: tuple[When, ...]) -> None:
    engine, jobs = shaky(workplace.engine)
    job_id = await workplace.enqueue("unknown")
    jobs.fail("release", *times)
    await workplace.start(engine=engine)
    await workplace.released()
    (job,) = await workplace.engine.inspect.get([job_id])
    assert job is not None
    assert (job.state, job.reason) == (JobState.READY, "unknown task"), "it stands aside"
    assert workplace.held() == 0


@pytest.mark.every_engine(1)
@pytest.mark.parametrize("seed", range(6))
async def test_a_line_that_fails_at_random_loses_nothing_and_runs_nothing_twice(
    workplace: Workplace, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.worker.claiming.until_answered.Backoff", lambda: Backoff(0.001, 0.002))
    dice = random.Random(seed)
    ran = counting(workplace)
    engine, jobs = shaky(workplace.engine)
    for method in ("claim", "settle"):
        plan: list[When | None] = [dice.choice(("before", "after", None)) for _ in range(60)]
        jobs.fail(method, *plan)
    ids = await workplace.enqueue_many("works", times=300)
    await workplace.start(engine=engine, slots=10)
    await workplace.settled(300)
    assert set(await workplace.states(ids)) == {JobState.COMPLETED}
    assert set(ran.values()) == {1}
    assert jobs.most_in_flight == 1
    assert workplace.held() == 0


async def test_what_runs_goes_on_while_the_engine_is_away(workplace: Workplace) -> None:
    both = asyncio.Barrier(2)
    first_gone = asyncio.Event()

    async def meets(number: int) -> None:
        await both.wait()
        if number == 2:
            await first_gone.wait()

    workplace.task(meets)
    engine, jobs = shaky(workplace.engine)
    jobs.fail("settle", "before", "before", "before", "before")
    worker = await workplace.start(engine=engine)
    ids = [await workplace.enqueue("meets", number) for number in (1, 2)]
    await worker.moments.reached("retried", 2)
    first_gone.set()
    await workplace.settled(2)
    assert await workplace.states(ids) == [JobState.COMPLETED, JobState.COMPLETED]


async def test_a_claim_whose_answer_was_lost_is_asked_for_in_a_drain_too(workplace: Workplace) -> None:
    """The drain begins while the claim is being repeated: its jobs are found, and released."""
    ran = counting(workplace)
    engine, jobs = shaky(workplace.engine)
    ids = await workplace.enqueue_many("works", times=3)
    jobs.fail("claim", "after", "before")
    worker = await workplace.start(engine=engine)
    await worker.moments.reached("retried")
    worker.drain(None)
    await workplace.over()
    assert await workplace.states(ids) == [JobState.READY] * 3
    assert not ran
    last = jobs.of("claim")[-1][0][0]
    assert (last.number, last.most, last.wants) == (1, 0, ())


async def test_a_claim_that_never_arrived_takes_nothing_in_a_drain(workplace: Workplace) -> None:
    counting(workplace)
    engine, jobs = shaky(workplace.engine)
    job_id = await workplace.enqueue("works")
    jobs.fail("claim", "before", "before")
    worker = await workplace.start(engine=engine)
    await worker.moments.reached("retried")
    worker.drain(None)
    await workplace.over()
    job = await workplace.job(job_id)
    assert (job.state, job.fence) == (JobState.READY, None)


async def test_an_engine_that_never_comes_back_does_not_hold_up_the_end(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.worker.claiming.until_answered.GIVE_UP_S", 0.0)
    counting(workplace)
    engine, jobs = shaky(workplace.engine)
    forever: list[When] = ["before"] * 1_000
    jobs.fail("settle", *forever)
    worker = await workplace.start(engine=engine)
    job_id = await workplace.enqueue("works")
    await worker.moments.reached("retried")
    drained = await workplace.drained(None)
    assert drained.finished == 0
    assert await workplace.states([job_id]) == [JobState.RUNNING]
    assert workplace.held() == 1, "its supervisor retires it"


async def test_an_engine_that_never_answered_does_not_hold_up_the_end_either(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.worker.claiming.until_answered.GIVE_UP_S", 0.0)
    counting(workplace)

    async def publish(*_: object) -> None:
        raise EngineUnavailable("the line is dead")

    monkeypatch.setattr(workplace.engine.tasks, "publish", publish)
    worker = await workplace.start()
    await worker.moments.reached("retried")
    drained = await workplace.drained(None)
    assert (drained.finished, drained.released) == (0, 0)


@pytest.mark.every_engine
async def test_one_outcome_that_cannot_be_stored_does_not_spoil_the_others(workplace: Workplace) -> None:
    """A defence against our own mistakes: nothing that a task returns gets this far."""
    end = asyncio.Event()

    async def works(number: int) -> int:
        await end.wait()
        return number

    workplace.task(works)
    worker = await workplace.start()
    ids = [await workplace.enqueue("works", number) for number in range(3)]
    await worker.moments.reached("claimed", 3)
    settle = worker._unsettled.settle

    def spoil(run: object) -> None:
        if run.job.id == ids[1]:  # type: ignore[attr-defined]
            run.outcome = Completed(result=b"x" * (2 << 20))  # type: ignore[attr-defined]
        settle(run)  # type: ignore[arg-type]

    worker._unsettled.settle = spoil  # type: ignore[method-assign]
    end.set()
    await workplace.settled(3)
    assert await workplace.states(ids) == [JobState.COMPLETED, JobState.DEAD, JobState.COMPLETED]
    assert workplace.held() == 0


@pytest.mark.every_engine
async def test_a_member_that_is_not_known_claims_again_after_its_next_heartbeat(workplace: Workplace) -> None:
    counting(workplace)
    worker = await workplace.start()
    await workplace.idle()
    await workplace.engine.members.leave(workplace.member.id)
    workplace.claimant = workplace.claimant[::-1]
    worker._claims._claimant = workplace.claimant  # leaving has retired the former
    job_id = await workplace.enqueue("works")
    await worker.moments.reached("not granted")
    await workplace.heartbeat()
    await workplace.settled()
    assert await workplace.states([job_id]) == [JobState.COMPLETED]


async def test_a_retired_claimant_ends(workplace: Workplace) -> None:
    counting(workplace)
    worker = await workplace.start()
    await workplace.idle()
    await workplace.engine.jobs.retire(workplace.claimant)
    worker._unsettled.claim_soon()
    with pytest.raises(ClaimantRetired):
        await workplace.over()


async def test_a_retired_claimant_begins_nothing_of_what_waited(workplace: Workplace) -> None:
    """Others have those jobs already."""
    ran: list[int] = []
    started, end = asyncio.Event(), asyncio.Event()

    async def holds(number: int) -> None:
        ran.append(number)
        started.set()
        await end.wait()

    workplace.task(holds)
    worker = await workplace.start(slots=1)
    workplace.claim_ahead(1)
    for number in (1, 2):
        await workplace.enqueue("holds", number)
    await started.wait()
    await worker.moments.reached("claimed", 2)
    await workplace.engine.jobs.retire(workplace.claimant)
    workplace.claim_ahead(2)
    worker._unsettled.claim_soon()
    with pytest.raises(ClaimantRetired):
        await workplace.over()
    (run,) = worker._slots.active.values()
    assert run.handle is not None
    end.set()
    await run.handle
    assert (worker.running, ran) == (0, [1])
    assert worker.moments.count("released") == 0


@pytest.mark.every_engine
@pytest.mark.row("B6")
async def test_an_outcome_that_comes_too_late_is_dropped(
    workplace: Workplace, caplog: pytest.LogCaptureFixture
) -> None:
    started, end = asyncio.Event(), asyncio.Event()

    async def works() -> str:
        started.set()
        await end.wait()
        return "too late"

    workplace.task(works)
    worker = await workplace.start()
    job_id = await workplace.enqueue("works")
    await started.wait()
    await workplace.engine.queues.pause("default")
    forgotten = ClaimantHeartbeat(claimant=workplace.claimant, answered_through=1_000, held=())
    await workplace.engine.members.heartbeat(workplace.member, [forgotten])
    end.set()
    await workplace.settled()
    assert worker.moments.count("refused") == 1
    job = await workplace.job(job_id)
    assert (job.state, job.result) == (JobState.READY, None)
    assert any("too late" in record.getMessage() for record in caplog.records)
