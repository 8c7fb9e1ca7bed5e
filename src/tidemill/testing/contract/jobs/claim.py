"""`jobs.claim`: who gets which jobs, under which numbers, and what is refused."""

import msgspec
import pytest

from tidemill.engine.protocol import PROMOTE_LIMIT, Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.run import LostRun
from tidemill.model.queues.gate import margin_of, step_length
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    Connect,
    a_claimant,
    a_job,
    configure,
    ids_of,
    job_of,
    some_jobs,
    states_of,
)


async def test_a_claimed_job_brings_what_a_worker_needs(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    new = a_job(
        task="mail",
        priority=2,
        body=b"[[1],{}]",
        codec=2,
        headers=b"{}",
        key="k",
        timeout=7 * SECOND,
        retry=Retry(attempts=9),
        attempts=9,
        on_dead="dead",
        schedule="s",
    )
    await engine.jobs.enqueue([new], now=clock.now)
    enqueued = clock.now
    clock.forward(5)
    job = await claimant.take_one()
    for field in ("id", "task", "queue", "priority", "body", "codec", "headers", "key", "timeout", "retry"):
        assert getattr(job, field) == getattr(new, field), field
    assert (job.attempt, job.max_attempts, job.crashes, job.suspect) == (1, 9, 0, False)
    assert (job.on_dead, job.schedule) == ("dead", "s")
    assert (job.created_at, job.ready_at, job.limited) == (enqueued, enqueued, False)


async def test_each_of_many_brings_its_own(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    new = [
        a_job(task=task, headers=headers, body=body)
        for task in ("mail", "mai", "mail")
        for headers in (None, b"{}", b'{"a":1}', b"{}")
        for body in (b"[[1],{}]", b"", b"x" * 9_000, b"[[2],{}]")
    ]
    await engine.jobs.enqueue(new, now=clock.now)
    jobs = await claimant.take()
    brought = [(job.id, job.task, job.headers, job.body) for job in jobs]
    assert brought == [(job.id, job.task, job.headers, job.body) for job in new]


async def test_a_claimed_job_runs_under_its_fence(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    clock.forward(5)
    claimed = await claimant.take_one()
    job = await job_of(engine, claimed.id)
    assert (job.state, job.fence, job.claimed_at) == (JobState.RUNNING, claimed.fence, clock.now)
    assert (job.member, job.started_at, job.attempts) == ("host:1", None, 0)
    assert job.seq == claimed.seq


@pytest.mark.row("B6")
async def test_fences_grow_over_claims_and_clients(connect: Connect, clock: Clock) -> None:
    one = await a_claimant(await connect(), clock, name="a")
    two = await a_claimant(await connect(), clock, name="b")
    await one.engine.jobs.enqueue(some_jobs(6), now=clock.now)
    fences = []
    for claimant in (one, two, one):
        fences += [job.fence for job in await claimant.take(most=2)]
    assert fences == sorted(fences)
    assert len(set(fences)) == 6
    assert fences[0] > 0
    assert fences[-1] < 2**53


async def test_a_job_is_taken_once(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    other = await a_claimant(engine, clock, name="other")
    assert ids_of(await claimant.take(most=2)) == ids_of(jobs[:2])
    assert ids_of(await other.take()) == ids_of(jobs[2:])
    assert await claimant.take() == []


async def test_no_more_than_asked(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(5), now=clock.now)
    assert len(await claimant.take(most=3)) == 3
    assert len(await claimant.take(most=3)) == 2


async def test_only_the_wanted_queues_are_read(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    mine, other = a_job(queue="mine"), a_job(queue="other")
    await engine.jobs.enqueue([other, mine], now=clock.now)
    assert ids_of(await claimant.take("mine", "never-seen")) == [mine.id]
    assert await states_of(engine, [other]) == [JobState.READY]


async def test_a_claim_does_not_create_a_queue(engine: Engine, claimant: Claimant) -> None:
    assert await claimant.take("never-seen") == []
    assert await engine.queues.list() == []


async def test_a_paused_queue_gives_nothing(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = some_jobs(2)
    await engine.jobs.enqueue(jobs, now=clock.now)
    await engine.queues.pause("q", now=clock.now)
    assert await claimant.take() == []
    assert await claimant.take(ids=tuple(ids_of(jobs))) == []
    await engine.queues.resume("q", now=clock.now)
    assert len(await claimant.take()) == 2


# By id


@pytest.mark.row("B4")
async def test_ids_are_taken_in_their_order_whatever_the_queue(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    jobs = [a_job(queue="a"), a_job(queue="b"), a_job(queue="a", priority=0), a_job(queue="b")]
    await engine.jobs.enqueue(jobs, now=clock.now)
    wanted = (jobs[3].id, new_id(), jobs[0].id, jobs[3].id, jobs[2].id)
    request = msgspec.structs.replace(claimant.request(ids=wanted), wants=())
    claim = await engine.jobs.claim(request, now=clock.now)
    assert ids_of(claim.jobs) == [jobs[3].id, jobs[0].id, jobs[2].id]
    assert await states_of(engine, jobs[1:2]) == [JobState.READY]


@pytest.mark.row("B4")
async def test_ten_copies_of_a_delivery_make_one_claim(connect: Connect, clock: Clock) -> None:
    job = a_job()
    workers = [await a_claimant(await connect(), clock, name=f"w{n}") for n in range(3)]
    await workers[0].engine.jobs.enqueue([job], now=clock.now)
    taken = [await workers[n % 3].take(ids=(job.id,)) for n in range(10)]
    assert [len(jobs) for jobs in taken] == [1] + [0] * 9


async def test_ids_take_only_ready_jobs_and_no_more_than_asked(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    later, done, *ready = a_job(delay=SECOND), a_job(), a_job(), a_job(), a_job()
    await engine.jobs.enqueue([later, done, *ready], now=clock.now)
    await claimant.complete(await claimant.take_one(ids=(done.id,)))
    taken = await claimant.take(most=2, ids=tuple(ids_of([later, done, *ready])))
    assert ids_of(taken) == ids_of(ready[:2])


async def test_ids_pass_the_same_gates(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(concurrency=1), now=clock.now)
    jobs = some_jobs(2)
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert ids_of(await claimant.take(ids=(jobs[1].id, jobs[0].id))) == [jobs[1].id]
    assert await claimant.take(ids=(jobs[0].id,)) == []


# Suspects


async def suspects(claimant: Claimant, count: int) -> list[bytes]:
    """Jobs that stand first in their lane and may have crashed a process."""
    await claimant.engine.jobs.enqueue(some_jobs(count), now=claimant.clock.now)
    child = Claimant(claimant.engine, claimant.clock, member=claimant.member)
    jobs = await child.take()
    lost_runs = [LostRun(id=job.id, fence=job.fence, verdict="suspect") for job in jobs]
    await claimant.engine.jobs.retire(child.id, lost_runs, now=claimant.clock.now)
    return ids_of(jobs)


async def test_suspects_do_not_hold_back_their_lane(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    suspected = await suspects(claimant, 3)
    others = some_jobs(3)
    await engine.jobs.enqueue(others, now=clock.now)
    assert ids_of(await claimant.take(most=2)) == ids_of(others[:2])
    taken = await claimant.take(suspects=1)
    assert ids_of(taken) == [suspected[0], others[2].id]
    assert [job.suspect for job in taken] == [True, False]
    assert ids_of(await claimant.take(suspects=5)) == suspected[1:]


async def test_the_allowance_of_suspects_goes_to_the_queues_in_turn(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    """Not to whichever queue the claim reads first: in the first queue a plain job stands before the
    suspect, so it is the second queue's suspect whose turn comes first."""
    plain, first, second = a_job(queue="a"), a_job(queue="a"), a_job(queue="b")
    await engine.jobs.enqueue([plain, first, second], now=clock.now)
    held = await claimant.take("a", "b")
    lost = [LostRun(id=run.id, fence=run.fence, verdict="suspect") for run in held if run.id != plain.id]
    await engine.jobs.retire(claimant.id, lost, now=clock.now)
    other = await a_claimant(engine, clock)
    assert ids_of(await other.take("a", "b", most=4, suspects=1)) == ids_of([plain, second])
    assert ids_of(await other.take("a", "b", most=4, suspects=1)) == [first.id]


async def test_ids_take_a_suspect_only_where_allowed(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    (suspect,) = await suspects(claimant, 1)
    assert await claimant.take(ids=(suspect,)) == []
    assert ids_of(await claimant.take(ids=(suspect,), suspects=1)) == [suspect]


# Due jobs and waiting


@pytest.mark.row("A2")
async def test_a_claim_takes_what_is_due_and_not_before(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    job = a_job(delay=10)
    await engine.jobs.enqueue([job], now=clock.now)
    clock.now += 9
    assert (await claimant.claim()).wait == 1
    clock.now += 1
    taken = await claimant.take_one()
    assert (taken.id, taken.ready_at) == (job.id, clock.now)


async def test_a_claim_moves_all_due_jobs_of_its_queues_only(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    mine = some_jobs(3, delay=SECOND)
    other = a_job(queue="other", delay=SECOND)
    await engine.jobs.enqueue([*mine, other], now=clock.now)
    clock.forward(1)
    await claimant.take(most=1)
    assert await states_of(engine, [*mine, other]) == [
        JobState.RUNNING,
        JobState.READY,
        JobState.READY,
        JobState.SCHEDULED,
    ]


@pytest.mark.row("A2")
async def test_more_due_jobs_than_one_claim_may_move(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    late = some_jobs(PROMOTE_LIMIT, delay=SECOND)
    last = a_job(delay=2 * SECOND)
    await engine.jobs.enqueue(late, now=clock.now)
    await engine.jobs.enqueue([last], now=clock.now)
    clock.forward(3)
    first = await claimant.claim(most=1_000)
    assert ids_of(first.jobs) == ids_of(late)
    assert ids_of(await claimant.take()) == [last.id]


async def test_wait_is_the_next_due_time_of_the_wanted_queues(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    assert (await claimant.claim("q", "r")).wait is None
    jobs = [a_job(delay=50), a_job(queue="r", delay=40), a_job(queue="x", delay=1), a_job()]
    await engine.jobs.enqueue(jobs, now=clock.now)
    claim = await claimant.claim("q", "r")
    assert (ids_of(claim.jobs), claim.wait) == ([jobs[3].id], 40)
    assert (await claimant.claim("q")).wait == 50


async def test_wait_is_when_a_rate_opens_if_that_comes_first(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(rate=Rate(1, per=1.0)), now=clock.now)
    await engine.jobs.enqueue([a_job(), a_job(), a_job(delay=5 * SECOND)], now=clock.now)
    claim = await claimant.claim()
    assert len(claim.jobs) == 1
    assert claim.wait is not None
    rate = Rate(1, per=1.0)
    assert SECOND + margin_of(rate) < claim.wait <= SECOND + margin_of(rate) + step_length(rate)
    clock.now += claim.wait - 1
    assert await claimant.take() == []
    clock.now += 1
    assert len(await claimant.take()) == 1


async def test_nothing_but_a_signal_opens_a_full_gate(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(concurrency=1), now=clock.now)
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    assert (await claimant.claim()).wait is None


# Expiry


async def test_an_expired_job_dies_instead_of_starting(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    expiring, lasting = a_job(expires=10), a_job()
    await engine.jobs.enqueue([expiring, lasting], now=clock.now)
    clock.now += 10
    assert ids_of(await claimant.take()) == [lasting.id]
    job = await job_of(engine, expiring.id)
    assert (job.state, job.ended_at, job.attempts) == (JobState.DEAD, clock.now, 0)
    assert job.error is not None
    assert job.error.kind == "expired"


async def test_a_job_may_start_until_it_expires(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job(expires=10)], now=clock.now)
    clock.now += 9
    assert len(await claimant.take()) == 1


async def test_limited_says_whether_a_job_may_be_buffered(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    options = {
        "free": QueueOptions(),
        "concurrency": QueueOptions(concurrency=9),
        "rate": QueueOptions(rate=Rate(9)),
        "key": QueueOptions(per_key=Limit(concurrency=9)),
        "task": QueueOptions(per_task={"t": Limit(concurrency=9)}),
        "fair": QueueOptions(fair_by="key"),
    }
    for queue, option in options.items():
        await configure(engine, queue, option, now=clock.now)
        await engine.jobs.enqueue([a_job(queue=queue)], now=clock.now)
    limited = {job.queue: job.limited for job in await claimant.take(*options)}
    assert limited == {queue: queue != "free" for queue in options}
