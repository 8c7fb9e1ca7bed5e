"""Order and fairness: lanes, priorities, turns; and what happens when a queue's options change."""

from collections import Counter
from typing import Any

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.jobs.job import JobState
from tidemill.model.queues.queue import Limit, QueueOptions
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_claimant,
    a_job,
    configure,
    ids_of,
    job_of,
    some_jobs,
)


async def keys_taken(claimant: Claimant, most: int = 100) -> str:
    """The keys of the next claim, in the order of its answer."""
    return "".join(job.key or "-" for job in await claimant.take(most=most))


async def fill(engine: Engine, clock: Clock, keys: str, **options: Any) -> None:
    """One job for each letter, in this order."""
    await engine.jobs.enqueue([a_job(key=key, **options) for key in keys], now=clock.now)


@pytest.mark.row("A1")
async def test_a_lane_is_taken_in_order_over_many_claims(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    jobs = some_jobs(30)
    for job in jobs:
        await engine.jobs.enqueue([job], now=clock.now)
    other = await a_claimant(engine, clock, name="other")
    taken = [job for n in range(15) for job in await (other if n % 2 else claimant).take(most=2)]
    assert ids_of(taken) == ids_of(jobs)


async def test_a_group_may_come_at_any_time(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    """Long after the options were set, when nothing is left to be put in order."""
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    for keys in ("", "", "", "ab", "bc", "a", "d"):
        await fill(engine, clock, keys)
        assert sorted(await keys_taken(claimant)) == list(keys)


@pytest.mark.row("E2")
async def test_a_reset_never_waits_behind_a_burst(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(500, priority=8), now=clock.now)
    assert len(await claimant.take(most=10)) == 10
    reset = a_job(priority=0)
    await engine.jobs.enqueue([reset], now=clock.now)
    assert (await claimant.take_one()).id == reset.id


@pytest.mark.row("E2")
async def test_priorities_are_strict(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = [a_job(priority=(n * 7) % 11) for n in range(44)]
    await engine.jobs.enqueue(jobs, now=clock.now)
    taken = [job for _ in range(9) for job in await claimant.take(most=5)]
    assert ids_of(taken) == ids_of(sorted(jobs, key=lambda job: job.priority))


async def test_priorities_count_inside_a_queue_only(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(4, queue="a", priority=9), now=clock.now)
    await engine.jobs.enqueue(some_jobs(4, queue="b", priority=0), now=clock.now)
    assert Counter(job.queue for job in await claimant.take("a", "b", most=4)) == {"a": 2, "b": 2}


async def test_queues_take_turns(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    for queue, count in (("a", 5), ("b", 2), ("c", 3)):
        await engine.jobs.enqueue(some_jobs(count, queue=queue), now=clock.now)
    taken = "".join(job.queue for job in await claimant.take("a", "b", "c"))
    assert taken == "abcabcacaa"


async def test_queues_share_single_slots(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    """A worker with one free slot at a time serves all its queues, whichever it names first."""
    for queue in ("a", "b", "c"):
        await engine.jobs.enqueue(some_jobs(10, queue=queue), now=clock.now)
    taken = [(await claimant.take_one("b", "a", "c")).queue for _ in range(12)]
    assert Counter(taken) == {"a": 4, "b": 4, "c": 4}


async def test_a_want_has_a_bound_of_its_own(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    for queue in ("a", "b"):
        await engine.jobs.enqueue(some_jobs(5, queue=queue), now=clock.now)
    taken = await claimant.take("a", "b", most=100, most_each=2)
    assert Counter(job.queue for job in taken) == {"a": 2, "b": 2}


async def test_a_retry_goes_to_the_end_of_its_lane(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    await claimant.fail(await claimant.take_one(), retry_in=0)
    assert ids_of(await claimant.take()) == ids_of([*jobs[1:], jobs[0]])


@pytest.mark.row("A1")
async def test_who_becomes_ready_later_stands_behind(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    due, early, late = a_job(delay=SECOND), a_job(), a_job()
    await engine.jobs.enqueue([due, early], now=clock.now)
    clock.forward(1)
    await engine.jobs.promote(now=clock.now)
    await engine.jobs.enqueue([late], now=clock.now)
    assert ids_of(await claimant.take()) == ids_of([early, due, late])


# Keys


@pytest.mark.row("F4")
async def test_keys_take_turns_where_the_queue_is_fair(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    await fill(engine, clock, "aaaaabbc")
    assert await keys_taken(claimant) == "abcabaaa"


async def test_keys_mean_nothing_where_the_queue_is_not_keyed(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await fill(engine, clock, "aaabbc")
    assert await keys_taken(claimant) == "aaabbc"


@pytest.mark.row("F4")
async def test_turns_go_on_where_the_claimant_stopped(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    await fill(engine, clock, "aaaabbbbcccc")
    assert [await keys_taken(claimant, most) for most in (1, 1, 1, 2, 2, 5)] == [
        "a",
        "b",
        "c",
        "ab",
        "ca",
        "bcabc",
    ]


@pytest.mark.row("F4")
async def test_a_crowd_does_not_starve_a_newcomer(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    await fill(engine, clock, "a" * 200)
    await claimant.take(most=10)
    await fill(engine, clock, "b")
    assert "b" in await keys_taken(claimant, most=2)


@pytest.mark.row("F4")
async def test_weights_give_more_turns(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    options = QueueOptions(fair_by="key", weights={"g": 3, "s": 2})
    await configure(engine, "q", options, now=clock.now)
    await fill(engine, clock, "ggggggggssssiiii")
    assert await keys_taken(claimant) == "gggissgggissggii"


@pytest.mark.row("F4")
@pytest.mark.parametrize("most", [1, 2, 4, 5])
async def test_shares_follow_the_weights_however_small_the_claims(
    engine: Engine, clock: Clock, claimant: Claimant, most: int
) -> None:
    options = QueueOptions(fair_by="key", weights={"g": 3})
    await configure(engine, "q", options, now=clock.now)
    await fill(engine, clock, "g" * 60 + "i" * 60)
    taken = "".join([await keys_taken(claimant, most) for _ in range(40 // most)])
    assert Counter(taken) == {"g": 30, "i": 10}


async def test_fairness_does_not_break_priorities(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    await fill(engine, clock, "abab", priority=6)
    await fill(engine, clock, "aacc", priority=4)
    assert await keys_taken(claimant) == "acacabab"


async def test_jobs_without_a_key_share_one_lane(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    await engine.jobs.enqueue([a_job(), a_job(), a_job(key="a"), a_job(key="")], now=clock.now)
    assert await keys_taken(claimant) == "-a--"


async def test_keys_of_any_script_are_lanes(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    keys = ["\u00e9", "e", "'; --", "%", "\U0001f600", "K" * 200]
    await configure(engine, "q", QueueOptions(per_key=Limit(concurrency=1)), now=clock.now)
    await engine.jobs.enqueue([a_job(key=key) for key in keys * 2], now=clock.now)
    taken = await claimant.take()
    assert sorted(job.key or "" for job in taken) == sorted(keys)
    await claimant.complete(*taken)
    assert sorted(job.key or "" for job in await claimant.take()) == sorted(keys)


# Changed options


@pytest.mark.row("F4")
async def test_waiting_jobs_move_when_a_queue_becomes_fair(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await fill(engine, clock, "aaab")
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    await fill(engine, clock, "bc")
    assert await keys_taken(claimant) == "abcaba"


async def test_waiting_jobs_move_back_when_it_no_longer_is(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    await fill(engine, clock, "aabc")
    await configure(engine, "q", QueueOptions(), now=clock.now)
    await fill(engine, clock, "a")
    assert await keys_taken(claimant) == "aabca"


async def test_scheduled_and_blocked_jobs_stand_in_their_new_lane_too(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    parent = a_job(queue="p")
    later = [a_job(key=key, delay=SECOND) for key in "aab"]
    blocked = [a_job(key=key, after=(parent.id,)) for key in "bc"]
    await engine.jobs.enqueue([parent, *later, *blocked], now=clock.now)
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    await claimant.complete(await claimant.take_one("p"))
    clock.forward(1)
    assert sorted(await keys_taken(claimant, most=3)) == ["a", "b", "c"]


@pytest.mark.row("F4")
async def test_a_new_limit_holds_for_a_thousand_waiting_jobs(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    for _ in range(2):
        await fill(engine, clock, "abc" * 300)
    await configure(engine, "q", QueueOptions(per_key=Limit(concurrency=2)), now=clock.now)
    taken: Counter[str | None] = Counter()
    for _ in range(5):
        taken.update(job.key for job in await claimant.take())
    assert taken == {"a": 2, "b": 2, "c": 2}


async def test_a_job_that_runs_keeps_running_when_lanes_change(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await fill(engine, clock, "ab")
    job = await claimant.take_one()
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    await claimant.release(job)
    assert (await job_of(engine, job.id)).state is JobState.READY
    assert await keys_taken(claimant) == "ab"


async def test_a_task_under_a_limit_does_not_hold_back_the_others(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    slow, quick = some_jobs(3, task="slow"), some_jobs(3, task="quick")
    await engine.jobs.enqueue([*slow, *quick], now=clock.now)
    await configure(engine, "q", QueueOptions(per_task={"slow": Limit(concurrency=1)}), now=clock.now)
    assert Counter(job.task for job in await claimant.take()) == {"slow": 1, "quick": 3}


async def test_every_key_has_its_turn(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    """Also those at the very end of Unicode, where a range over groups could stop too early."""
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    keys = [None, "a", "\U0010ffff", "\U0010ffff" * 200, "\U0010ffffx"]
    await engine.jobs.enqueue([a_job(key=key) for key in keys], now=clock.now)
    assert {job.key for job in await claimant.take()} == set(keys)


async def test_the_queue_served_last_waits_for_the_others(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    """Also if it was the only one wanted."""
    await engine.jobs.enqueue([*some_jobs(2, queue="a"), *some_jobs(2, queue="b")], now=clock.now)
    assert [job.queue for job in await claimant.take("a", most=1)] == ["a"]
    assert [job.queue for job in await claimant.take("a", "b", most=1)] == ["b"]
