"""Unique keys: at most one job of a key, and what a call does that meets one."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tidemill.engine.protocol import Engine, TransactionsFacet
from tidemill.model.errors import BadInput, NotUnique, UnknownParent
from tidemill.model.ids import JobId, new_id
from tidemill.model.jobs.job import JobState, NewJob, ReplayAnswer, Stored
from tidemill.model.jobs.move import Moves
from tidemill.model.jobs.run import Completed, LostRun, Then
from tidemill.model.jobs.unique import REPLACING_KEPT, UniqueKey
from tidemill.model.queues.queue import Keep, Limit, QueueOptions
from tidemill.model.schedules.schedule import Every, Schedule
from tidemill.model.time import SECOND, Span
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    Connect,
    UserConnection,
    a_job,
    completed,
    configure,
    created,
    ids_of,
    job_of,
    play,
    settlement,
    states_of,
)


def of(key: str = "x", /, *, unique: dict[str, Any] | None = None, **options: Any) -> NewJob:
    """A job of a unique key."""
    return a_job(unique=UniqueKey(**{"key": key, **(unique or {})}), **options)


async def put(engine: Engine, clock: Clock, *jobs: NewJob) -> list[Stored]:
    return await engine.jobs.enqueue(jobs, now=clock.now)


async def put_one(engine: Engine, clock: Clock, job: NewJob) -> Stored:
    (stored,) = await put(engine, clock, job)
    return stored


async def is_free(engine: Engine, clock: Clock, key: str = "x", *, period: Span | None = None) -> bool:
    """Whether a call would find the key free: asked by one that is refused, and cannot be stored."""
    probe = of(key, unique={"on_conflict": "refuse", "period": period}, after=(new_id(),))
    with pytest.raises((NotUnique, UnknownParent)) as refused:
        await put(engine, clock, probe)
    return refused.type is UnknownParent


# What is met


@pytest.mark.row("F12")
async def test_a_second_call_meets_the_job_that_is_there(engine: Engine, clock: Clock) -> None:
    first, second, other = of(), of(), of("y")
    assert await put(engine, clock, first) == [Stored(first.id, True)]
    assert await put(engine, clock, second, other) == [Stored(first.id, False), Stored(other.id, True)]
    assert await states_of(engine, [first, second, other]) == [JobState.READY, None, JobState.READY]
    assert (await job_of(engine, first.id)).unique == "x"
    assert (await job_of(engine, first.id)).body == first.body


async def test_a_key_belongs_to_its_task(engine: Engine, clock: Clock) -> None:
    assert created(await put(engine, clock, of(), of(task="u"), of(queue="another"))) == [True, True, False]


async def test_two_of_one_call_are_two_calls(engine: Engine, clock: Clock) -> None:
    first, second = of(), of(unique={"on_conflict": "replace"}, body=b"[[2],{}]")
    plain = a_job()
    assert await put(engine, clock, first, plain, second) == [
        Stored(first.id, True), Stored(plain.id, True), Stored(first.id, False),
    ]  # fmt: skip
    assert (await job_of(engine, first.id)).body == second.body


@pytest.mark.parametrize("how", ["scheduled", "blocked", "running", "retried"])
async def test_whatever_is_live_is_met(engine: Engine, clock: Clock, claimant: Claimant, how: str) -> None:
    parent = a_job(queue="other")
    options: dict[str, dict[str, Any]] = {"scheduled": {"delay": 5}, "blocked": {"after": (parent.id,)}}
    job = of(**options.get(how, {}))
    await put(engine, clock, parent, job)
    if how in ("running", "retried"):
        run = await claimant.take_one()
        if how == "retried":
            await claimant.fail(run, retry_in=SECOND)
    assert await put_one(engine, clock, of()) == Stored(job.id, False)
    with pytest.raises(NotUnique) as refused:
        await put(engine, clock, a_job(), of(unique={"on_conflict": "refuse"}))
    assert refused.value.holder == job.id
    assert refused.value.id in str(refused.value)
    counts = await engine.inspect.counts(now=clock.now)
    assert sum(each.in_state(state) for each in counts for state in JobState) == 2, "nothing was stored"


@pytest.mark.row("F12")
@pytest.mark.parametrize("how", ["completed", "dead", "cancelled", "cancelled while it waits", "expired"])
async def test_whatever_has_ended_is_not(engine: Engine, clock: Clock, claimant: Claimant, how: str) -> None:
    job = of(expires=SECOND, on_dead="bury")
    await put(engine, clock, job)
    match how:
        case "cancelled while it waits":
            await engine.jobs.cancel([job.id], now=clock.now)
        case "expired":
            clock.forward(1)
            await engine.jobs.promote(now=clock.now)
        case _:
            run = await claimant.take_one()
            assert not await is_free(engine, clock)
            if how == "completed":
                await claimant.complete(run)
            elif how == "dead":
                await claimant.fail(run)
            else:
                await claimant.stop(run)
    assert await is_free(engine, clock)
    assert (await put_one(engine, clock, of())).created


async def test_a_handler_of_a_death_has_no_key(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await put(engine, clock, of(on_dead="t"))
    await claimant.fail(await claimant.take_one())
    handler = await claimant.take_one()
    assert (handler.task, (await job_of(engine, handler.id)).unique) == ("t", None)
    assert await is_free(engine, clock)


async def test_a_claim_that_finds_it_expired_frees_its_key(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await put(engine, clock, of(expires=SECOND))
    clock.forward(1)
    assert await claimant.take() == []
    assert await is_free(engine, clock)


async def test_a_child_that_is_cancelled_at_once_holds_nothing(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    parent = a_job()
    await put(engine, clock, parent)
    await claimant.fail(await claimant.take_one())
    child = of(after=(parent.id,))
    assert (await put_one(engine, clock, child)).created
    assert await states_of(engine, [child]) == [JobState.CANCELLED]
    assert await is_free(engine, clock)


async def test_a_child_that_its_parent_takes_along_frees_its_key(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    parent = a_job()
    await put(engine, clock, parent, of(after=(parent.id,)))
    assert not await is_free(engine, clock)
    await claimant.fail(await claimant.take_one())
    assert await is_free(engine, clock)


async def test_a_tombstone_holds_nothing(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(keep_completed=Keep(count=0)), now=clock.now)
    job = of()
    await put(engine, clock, job)
    await claimant.complete(await claimant.take_one())
    assert await put_one(engine, clock, job) == Stored(job.id, False), "its id is known"
    assert await is_free(engine, clock)


async def test_it_runs_beside_plain_jobs_under_limits(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    options = QueueOptions(concurrency=9, per_key=Limit(concurrency=1), fair_by="key")
    await configure(engine, "q", options, now=clock.now)
    jobs = [of("a", key="k"), of("b", key="k", unique={"until": "start"}), a_job(key="l")]
    await put(engine, clock, *jobs)
    runs = await claimant.take()
    assert len(runs) == 2, "one of each key"
    await claimant.complete(*runs)
    await claimant.complete(await claimant.take_one())
    assert await is_free(engine, clock, "a")
    assert await is_free(engine, clock, "b")


# Until it starts


@pytest.mark.row("F12")
@pytest.mark.parametrize("also", ["alone", "among others", "by its id", "of several queues"])
async def test_a_key_until_the_start_is_free_when_it_runs(
    engine: Engine, clock: Clock, claimant: Claimant, also: str
) -> None:
    job = of(unique={"until": "start"})
    await put(engine, clock, job, *([] if also == "alone" else [a_job(), of("y", unique={"until": "start"})]))
    assert not await is_free(engine, clock)
    if also == "by its id":
        await claimant.take(ids=(job.id,))
    elif also == "of several queues":
        await put(engine, clock, a_job(queue="r"))
        await claimant.take("q", "r")
    else:
        await claimant.take()
    assert await is_free(engine, clock)
    assert (await put_one(engine, clock, of(unique={"until": "start"}))).created


@pytest.mark.parametrize("how", ["released", "released for later", "retried", "crashed", "retired"])
async def test_a_run_that_goes_back_takes_its_key_again(
    engine: Engine, clock: Clock, claimant: Claimant, how: str
) -> None:
    job = of(unique={"until": "start"})
    await put(engine, clock, job)
    run = await claimant.take_one()
    match how:
        case "released":
            await claimant.release(run)
        case "released for later":
            await claimant.release(run, delay=SECOND, reason="snooze")
        case "retried":
            await claimant.fail(run, retry_in=SECOND)
        case "crashed":
            lost = [LostRun(id=run.id, fence=run.fence, verdict="crash")]
            await engine.jobs.retire(claimant.id, lost, now=clock.now)
        case _:
            await engine.jobs.retire(claimant.id, now=clock.now)
    assert await put_one(engine, clock, of()) == Stored(job.id, False)


@pytest.mark.parametrize("how", ["released", "retried"])
async def test_it_goes_without_if_another_has_it(
    engine: Engine, clock: Clock, claimant: Claimant, how: str
) -> None:
    first, second = of(unique={"until": "start"}), of(unique={"until": "start"})
    await put(engine, clock, first)
    run = await claimant.take_one()
    assert (await put_one(engine, clock, second)).created
    if how == "released":
        await claimant.release(run)
    else:
        await claimant.fail(run, retry_in=0)
    assert await put_one(engine, clock, of()) == Stored(second.id, False)
    runs = {each.id: each for each in await claimant.take()}
    assert set(runs) == {first.id, second.id}
    assert await is_free(engine, clock)
    third = of(unique={"until": "start"})
    assert (await put_one(engine, clock, third)).created
    await claimant.complete(*runs.values())
    assert await put_one(engine, clock, of()) == Stored(third.id, False), "their end is no end of its key"


# Replace


@pytest.mark.row("F12")
@pytest.mark.parametrize("before", ["ready", "scheduled"])
@pytest.mark.parametrize("after", ["ready", "scheduled"])
async def test_replace_gives_the_waiting_job_payload_time_and_priority(
    engine: Engine, clock: Clock, claimant: Claimant, before: str, after: str
) -> None:
    later = {"ready": 0, "scheduled": 10 * SECOND}
    job = of(delay=later[before], expires=5 * SECOND, headers=b'{"tags":["a"]}', timeout=7)
    await put(engine, clock, job, a_job(priority=3))
    clock.forward(1)
    new = of(
        unique={"on_conflict": "replace"}, delay=2 * later[after], body=b"[[2],{}]", key="k", priority=3,
        timeout=8, attempts=9,
    )  # fmt: skip
    moves = Moves()
    assert await engine.jobs.enqueue([new], moves=moves, now=clock.now) == [Stored(job.id, False)]
    shown = await job_of(engine, job.id)
    assert (shown.state, shown.body, shown.key, shown.priority) == (JobState(after), b"[[2],{}]", "k", 3)
    assert (shown.headers, shown.expires_at, shown.timeout, shown.max_attempts) == (None, None, 7, 5)
    assert shown.due_at == (clock.now + 20 * SECOND if after == "scheduled" else None)
    moved = [(move.id, move.state) for move in moves.named]
    assert moved == ([] if before == after else [(job.id, JobState(after))])
    assert not await is_free(engine, clock)
    clock.forward(20)
    assert [run.body for run in await claimant.take()] == [b"[[],{}]", b"[[2],{}]"], "the end of its lane"


async def test_replace_leaves_a_running_job_alone(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    job = of()
    await put(engine, clock, job)
    run = await claimant.take_one()
    new = of(unique={"on_conflict": "replace"}, body=b"[[2],{}]", delay=5)
    assert await put_one(engine, clock, new) == Stored(job.id, False)
    shown = await job_of(engine, job.id)
    assert (shown.state, shown.body) == (JobState.RUNNING, job.body)
    await claimant.complete(run)
    assert await put_one(engine, clock, new) == Stored(new.id, True), "what met a running job changed nothing"


async def test_replace_keeps_a_blocked_job_blocked(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    parent = a_job()
    child = of(after=(parent.id,))
    await put(engine, clock, parent, child)
    new = of(unique={"on_conflict": "replace"}, body=b"[[2],{}]", delay=5 * SECOND, expires=60 * SECOND)
    await put(engine, clock, new)
    assert await states_of(engine, [child]) == [JobState.BLOCKED]
    await claimant.complete(await claimant.take_one())
    shown = await job_of(engine, child.id)
    assert (shown.state, shown.due_at) == (JobState.SCHEDULED, clock.now + 5 * SECOND)
    clock.forward(60)
    await engine.jobs.promote(now=clock.now)
    assert await states_of(engine, [child]) == [JobState.DEAD], "by the new expiry"


async def test_a_replaced_job_stands_in_the_lane_of_its_new_key(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(per_key=Limit(concurrency=1)), now=clock.now)
    await put(engine, clock, of(key="a"), a_job(key="b"))
    await put(engine, clock, of(unique={"on_conflict": "replace"}, key="b"))
    first = await claimant.take_one()
    assert first.key == "b"
    assert await claimant.take() == [], "both are behind the gate of b"
    await claimant.complete(first)
    assert [run.key for run in await claimant.take()] == ["b"]


@pytest.mark.parametrize("delay", [0, SECOND])
async def test_a_job_that_stands_aside_is_replaced(
    engine: Engine, clock: Clock, claimant: Claimant, delay: int
) -> None:
    job = of(unique={"until": "start"})
    await put(engine, clock, job)
    assert await claimant.take(unknown=("t",)) == []
    new = of(unique={"until": "start", "on_conflict": "replace"}, body=b"[[2],{}]", priority=2, delay=delay)
    assert await put_one(engine, clock, new) == Stored(job.id, False)
    clock.forward(1)
    assert await claimant.take(unknown=("t",)) == []
    assert not await is_free(engine, clock)
    assert [run.body for run in await claimant.take()] == [b"[[2],{}]"]
    assert await is_free(engine, clock)


@pytest.mark.row("F12")
async def test_a_repeat_of_a_replace_changes_nothing(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    job = of(unique={"until": "start"})
    await put(engine, clock, job)
    again = {"until": "start", "on_conflict": "replace"}
    calls = [of(unique=again, body=b"[[%d],{}]" % n) for n in range(REPLACING_KEPT)]
    for call in calls:
        assert await put_one(engine, clock, call) == Stored(job.id, False)
    for call in calls:
        assert await put_one(engine, clock, call) == Stored(job.id, False)
    assert (await job_of(engine, job.id)).body == calls[-1].body
    run = await claimant.take_one()
    assert await put_one(engine, clock, calls[0]) == Stored(job.id, False), (
        "its key is free, it was done all the same"
    )
    await claimant.complete(run)
    assert await put_one(engine, clock, calls[0]) == Stored(job.id, False)
    await engine.jobs.drop([job.id], now=clock.now)
    assert await put_one(engine, clock, calls[0]) == Stored(calls[0].id, True), "nothing is known any more"


@pytest.mark.row("F12")
async def test_the_due_time_is_put_off_to_the_latest(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    said = {"until": "start", "on_conflict": "replace", "latest": 12 * SECOND}
    first = of(unique=said, delay=5 * SECOND)
    await put(engine, clock, first)
    dues = []
    for _ in range(3):
        clock.forward(4)
        await put(engine, clock, of(unique=said, delay=5 * SECOND, body=b"[[%d],{}]" % clock.now))
        dues.append((await job_of(engine, first.id)).due_at)
    assert dues == [clock.now - 3 * SECOND, clock.now, None], "in 9 s, in 12 s, and it stays 12 s"
    other = a_job()
    await put(engine, clock, other)
    clock.forward(1)
    await put(engine, clock, of(unique=said, delay=5 * SECOND, body=b"[[9],{}]"))
    taken = await claimant.take()
    assert ids_of(taken) == [first.id, other.id], "a ready job that is overdue keeps its place"
    assert taken[0].body == b"[[9],{}]"


# Periods


@pytest.mark.row("F12")
async def test_a_period_is_held_whatever_becomes_of_the_job(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    job, period = of(unique={"period": 60 * SECOND}), {"period": 60 * SECOND}
    await put(engine, clock, job)
    clock.forward(59)
    await claimant.complete(await claimant.take_one())
    assert await put_one(engine, clock, of(unique=period)) == Stored(job.id, False)
    await engine.jobs.drop([job.id], now=clock.now)
    await engine.jobs.prune(now=clock.now)
    assert await put_one(engine, clock, of(unique=period)) == Stored(job.id, False), "past its drop"
    assert await put_one(engine, clock, of(unique=period | {"on_conflict": "replace"})) == Stored(
        job.id, False
    )
    assert not await is_free(engine, clock, period=SECOND)
    clock.forward(1)
    second = of(unique=period)
    assert await put_one(engine, clock, second) == Stored(second.id, True)
    assert await put_one(engine, clock, of(unique=period)) == Stored(second.id, False)
    clock.forward(60)
    await engine.jobs.prune(now=clock.now)
    assert await is_free(engine, clock, period=SECOND)


async def test_a_period_outlives_a_tombstone(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(keep_completed=Keep(count=0)), now=clock.now)
    job = of(unique={"period": 9_000 * SECOND})
    await put(engine, clock, job)
    await claimant.complete(await claimant.take_one())
    clock.forward(8_000)
    await engine.jobs.prune(now=clock.now)
    assert await put_one(engine, clock, of(unique={"period": SECOND})) == Stored(job.id, False)


async def test_a_live_job_of_an_older_period_is_not_met(engine: Engine, clock: Clock) -> None:
    period = {"period": SECOND}
    await put(engine, clock, of(unique=period))
    clock.forward(1)
    assert (await put_one(engine, clock, of(unique=period))).created


async def test_the_two_kinds_of_keys_never_meet(engine: Engine, clock: Clock) -> None:
    assert created(await put(engine, clock, of(), of(unique={"period": SECOND}))) == [True, True]


async def test_replace_within_a_period(engine: Engine, clock: Clock) -> None:
    job = of(unique={"period": 60 * SECOND})
    await put(engine, clock, job)
    new = of(unique={"period": 60 * SECOND, "on_conflict": "replace"}, body=b"[[2],{}]")
    assert await put_one(engine, clock, new) == Stored(job.id, False)
    assert (await job_of(engine, job.id)).body == new.body


async def test_a_dropped_job_may_be_stored_again_within_its_own_period(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    job = of(unique={"period": 60 * SECOND})
    await put(engine, clock, job)
    await claimant.complete(await claimant.take_one())
    await engine.jobs.drop([job.id], now=clock.now)
    assert await put_one(engine, clock, job) == Stored(job.id, True), "its own key is no conflict"


# Ids


@pytest.mark.row("F12")
async def test_a_repeat_never_meets_itself(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    kinds: list[dict[str, Any]] = [
        {}, {"on_conflict": "refuse"}, {"on_conflict": "replace"}, {"period": SECOND},
    ]  # fmt: skip
    for more in kinds:
        job = of(str(more), unique=more)
        assert await put_one(engine, clock, job) == Stored(job.id, True)
        assert await put_one(engine, clock, job) == Stored(job.id, False)
        run = await claimant.take_one()
        assert await put_one(engine, clock, job) == Stored(job.id, False)
        await claimant.complete(run)
        assert await put_one(engine, clock, job) == Stored(job.id, False)


async def test_a_known_id_counts_first(engine: Engine, clock: Clock) -> None:
    plain, holder = a_job(), of()
    await put(engine, clock, plain, holder)
    same_id = of(id=plain.id, unique={"on_conflict": "refuse"})
    assert await put_one(engine, clock, same_id) == Stored(plain.id, False)
    other_key = of("z", id=holder.id)
    assert await put_one(engine, clock, other_key) == Stored(holder.id, False)
    assert await is_free(engine, clock, "z"), "a job that was not stored holds nothing"


async def test_a_parent_that_met_another_job_is_unknown(engine: Engine, clock: Clock) -> None:
    await put(engine, clock, of())
    met = of()
    child = a_job(after=(met.id,))
    with pytest.raises(UnknownParent):
        await put(engine, clock, met, child)
    assert await states_of(engine, [met, child]) == [None, None]


async def test_a_child_may_wait_for_one_of_the_same_call(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    parent = of("p")
    child, second = of(after=(parent.id,)), of(after=(parent.id,))
    assert await put(engine, clock, parent, child, second) == [
        Stored(parent.id, True), Stored(child.id, True), Stored(child.id, False),
    ]  # fmt: skip
    assert ids_of(await claimant.take()) == [parent.id]


# Operators


@pytest.mark.row("F12")
@pytest.mark.parametrize("until", ["end", "start"])
async def test_replay_takes_the_key_again_or_is_refused(
    engine: Engine, clock: Clock, claimant: Claimant, until: str
) -> None:
    job = of(unique={"until": until})
    await put(engine, clock, job)
    await claimant.fail(await claimant.take_one())
    second = of()
    await put(engine, clock, second)
    token = new_id()
    assert await engine.jobs.replay([job.id], token=token, now=clock.now) == [ReplayAnswer.NOT_UNIQUE]
    assert await states_of(engine, [job]) == [JobState.DEAD]
    await engine.jobs.cancel([second.id], now=clock.now)
    assert await engine.jobs.replay([job.id, second.id], token=token, now=clock.now) == [
        ReplayAnswer.REPLAYED, ReplayAnswer.NOT_UNIQUE,
    ]  # fmt: skip
    assert await put_one(engine, clock, of()) == Stored(job.id, False)


async def test_replay_of_a_job_with_a_period_asks_nobody(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    job = of(unique={"period": SECOND})
    await put(engine, clock, job)
    await claimant.fail(await claimant.take_one())
    clock.forward(1)
    assert (await put_one(engine, clock, of(unique={"period": SECOND}))).created
    assert await engine.jobs.replay([job.id], token=new_id(), now=clock.now) == [ReplayAnswer.REPLAYED]


async def test_run_now_and_due_times_keep_the_key(engine: Engine, clock: Clock) -> None:
    first, second = of("a", delay=SECOND), of("b", delay=SECOND, unique={"until": "start"})
    await put(engine, clock, first, second)
    await engine.jobs.run_now([first.id], now=clock.now)
    clock.forward(1)
    await engine.jobs.promote(now=clock.now)
    assert await states_of(engine, [first, second]) == [JobState.READY, JobState.READY]
    assert not await is_free(engine, clock, "a")
    assert not await is_free(engine, clock, "b")


async def test_a_schedule_passes_over_a_tick_whose_key_is_held(engine: Engine, clock: Clock) -> None:
    schedule = Schedule(name="s", timing=Every(seconds=1), job=of(), next_at=clock.now)
    await engine.schedules.put([schedule], now=clock.now)
    first, second = of(), of()
    tick = clock.now
    fired = await engine.schedules.fire(
        "s", tick=tick, before=None, next_at=tick + 1, jobs=[first], last_at=tick, now=tick
    )
    assert fired is not None
    assert fired.stored == [Stored(first.id, True)]
    fired = await engine.schedules.fire(
        "s", tick=tick + 1, before=tick, next_at=tick + 2, jobs=[second], last_at=tick + 1, now=tick
    )
    assert fired is not None
    assert fired.stored == [Stored(first.id, False)]


# Many at once


@pytest.mark.row("F12")
@pytest.mark.parametrize("conflict", ["existing", "replace"])
async def test_of_many_producers_at_once_one_stores_it(connect: Connect, clock: Clock, conflict: str) -> None:
    engines = [await connect() for _ in range(4)]
    keys = [str(n) for n in range(5)]

    async def produce(engine: Engine) -> Sequence[tuple[str, Stored]]:
        mine = [(key, of(key, unique={"on_conflict": conflict})) for _ in range(4) for key in keys]
        stored = await engine.jobs.enqueue([job for _, job in mine], now=clock.now)
        return [(key, each) for (key, _), each in zip(mine, stored, strict=True)]

    answers = [each for some in await asyncio.gather(*map(produce, engines)) for each in some]
    ids: dict[str, set[JobId]] = {key: set() for key in keys}
    for key, stored in answers:
        ids[key].add(stored.id)
    assert [len(met) for met in ids.values()] == [1] * len(keys)
    assert sum(stored.created for _, stored in answers) == len(keys)
    counts = await engines[0].inspect.counts(now=clock.now)
    assert sum(each.in_state(JobState.READY) for each in counts) == len(keys)


async def test_producers_and_workers_at_once(connect: Connect, clock: Clock) -> None:
    """A job replaced while claims come by runs with one payload or the other, and none is left behind."""
    engine, other = await connect(), await connect()
    claimant = Claimant(other, clock)
    await claimant.heartbeat()
    said = {"until": "start", "on_conflict": "replace"}
    bodies = [b"[[%d],{}]" % n for n in range(60)]
    ran: list[bytes] = []

    async def produce() -> None:
        for body in bodies:
            await put(engine, clock, of(unique=said, body=body))

    async def work() -> None:
        while bodies[-1] not in ran:
            ran.extend([run.body for run in await claimant.take()])

    async with asyncio.timeout(60):
        await asyncio.gather(produce(), work())
    assert sorted(ran, key=bodies.index) == ran, "each later than the one before, the last one too"
    assert len(set(ran)) == len(ran)


# Transactions of the caller's


@pytest.mark.row("F12")
async def test_a_transaction_meets_and_holds(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection, clock: Clock
) -> None:
    there, mine, plain = of("a"), of("b"), a_job()
    await engine.jobs.enqueue([there])
    stored = play(connection, transactions.enqueue([of("a"), mine, of("b"), plain, plain]))
    assert stored == [
        Stored(there.id, False), Stored(mine.id, True), Stored(mine.id, False), Stored(plain.id, True),
        Stored(plain.id, False),
    ]  # fmt: skip
    connection.commit()
    assert await engine.jobs.enqueue([of("b")]) == [Stored(mine.id, False)]
    assert (await job_of(engine, mine.id)).unique == "b"


async def test_a_transaction_that_is_undone_holds_nothing(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection
) -> None:
    period = {"period": 60 * SECOND}
    play(connection, transactions.enqueue([of("a"), of("b", unique=period)]))
    connection.rollback()
    assert created(await engine.jobs.enqueue([of("a"), of("b", unique=period)])) == [True, True]
    stored = play(connection, transactions.enqueue([of("b", unique=period), of("c", unique=period)]))
    assert created(stored) == [False, True]
    connection.commit()
    assert created(await engine.jobs.enqueue([of("c", unique=period)])) == [False]


async def test_a_transaction_is_refused_whole(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection
) -> None:
    there, mine = of(), a_job()
    await engine.jobs.enqueue([there])
    with pytest.raises(NotUnique) as refused:
        play(connection, transactions.enqueue([mine, of(unique={"on_conflict": "refuse"})]))
    assert refused.value.holder == there.id
    another = a_job()
    play(connection, transactions.enqueue([another]))
    connection.commit()
    assert await states_of(engine, [mine, another]) == [None, JobState.READY]


async def test_a_transaction_does_not_replace(transactions: TransactionsFacet) -> None:
    with pytest.raises(BadInput, match="transaction="):
        transactions.enqueue([of(unique={"on_conflict": "replace"})])


async def test_a_completion_in_a_transaction_frees_the_key(
    engine: Engine, transactions: TransactionsFacet, connection: UserConnection
) -> None:
    await engine.jobs.enqueue([of()])
    clock = Clock(await engine.now())
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
    run = await claimant.take_one()
    play(connection, transactions.complete(settlement(run, Completed(result=b"1"))))
    connection.commit()
    assert (await put_one(engine, clock, of())).created


# Bad input


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (UniqueKey(key=""), "1 to 200"),
        (UniqueKey(key="x" * 201), "1 to 200"),
        (UniqueKey(key="a\x00b"), "characters"),
        (UniqueKey(key="\ud800"), "characters"),
        (UniqueKey(key=7), "a string"),  # type: ignore[arg-type]
        (UniqueKey(key="x", until="never"), "unique_until"),  # type: ignore[arg-type]
        (UniqueKey(key="x", on_conflict="keep"), "on_conflict"),  # type: ignore[arg-type]
        (UniqueKey(key="x", period=0), "unique_for"),
        (UniqueKey(key="x", period=1.5), "unique_for"),  # type: ignore[arg-type]
        (UniqueKey(key="x", latest=0, on_conflict="replace"), "debounce_max"),
        (UniqueKey(key="x", latest=5), "replace"),
        ("x", "UniqueKey"),
    ],
)
async def test_a_bad_key_is_refused(engine: Engine, bad: UniqueKey, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        await engine.jobs.enqueue([a_job(unique=bad)])
    with pytest.raises(BadInput, match="after="):
        await engine.jobs.enqueue([of(unique={"on_conflict": "replace"}, after=(new_id(),))])


async def test_what_cannot_be_unique(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    refusing = Schedule(name="s", timing=Every(seconds=1), job=of(unique={"on_conflict": "refuse"}))
    with pytest.raises(BadInput, match="refuse"):
        await engine.schedules.put([refusing], now=clock.now)
    await put(engine, clock, a_job())
    run = await claimant.take_one()
    with pytest.raises(BadInput, match="unique"):
        await claimant.settle(completed(run, then=Then(jobs=(of(),))))
