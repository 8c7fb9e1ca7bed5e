"""What keeps the tables small and the numbers right over time."""

import asyncio
import json
import time
from typing import Any

import asyncpg
import pytest

from tests.integration.postgres.conftest import Plain
from tidemill.engine.protocol import PRUNE_LIMIT
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.engines.postgres.jobs.jobs import PRUNE_BUDGET
from tidemill.model.jobs.job import JobState
from tidemill.model.queues.queue import Keep, Limit, QueueOptions
from tidemill.model.time import MILLISECOND, SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_claimant,
    a_job,
    configure,
    ids_of,
    some_jobs,
)

SELDOM_CHANGED = {"meta", "task", "paused_task", "audit", "queue_layers"}


async def test_tables_are_vacuumed_by_dead_rows(plain: Plain) -> None:
    """By the server's own rule a fifth of a large table has to be dead first."""
    connection = await plain()
    rows = await connection.fetch(
        "SELECT relname, reloptions::text[], (SELECT t.reloptions::text[] FROM pg_class AS t "
        "WHERE t.oid = c.reltoastrelid) FROM pg_class AS c "
        "WHERE relnamespace = 'tidemill'::regnamespace AND relkind = 'r'"
    )
    options = {name: set(own or ()) for name, own, _ in rows}
    late = {
        name
        for name, own in options.items()
        if not own & {"autovacuum_vacuum_scale_factor=0", "autovacuum_vacuum_scale_factor=0.02"}
    }
    assert late == SELDOM_CHANGED
    (toast,) = [toast for name, _, toast in rows if name == "job"]
    assert "autovacuum_vacuum_scale_factor=0.02" in toast, "large bodies lie there"


async def test_a_fence_does_not_repeat_after_a_restore(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    await engine.jobs.enqueue(some_jobs(4), now=clock.now)
    before = (await claimant.take(most=2))[-1].fence
    await (await plain()).execute("SELECT setval('tidemill.fence', 1)")
    assert min(job.fence for job in await claimant.take()) > before


async def row(connection: "asyncpg.Connection[Any]", sql: str, *parameters: object) -> Any:
    (found,) = await connection.fetch(sql, *parameters)
    return found


async def finish(engine: PostgresEngine, claimant: Claimant, clock: Clock, count: int) -> None:
    for begin in range(0, count, 1_000):
        await engine.jobs.enqueue(some_jobs(min(1_000, count - begin)), now=clock.now)
        await claimant.complete(*await claimant.take(most=1_000))
        clock.forward(1)
        await claimant.heartbeat()


@pytest.mark.row("C6")
async def test_retention_stops_when_its_time_is_over(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, plain: Plain
) -> None:
    """The function checks its own clock after every 500 jobs: without time it does these and no more."""
    await configure(engine, "q", QueueOptions(keep_completed=Keep(age=1.0)), now=clock.now)
    await finish(engine, claimant, clock, 2_000)
    clock.forward(100)
    connection = await plain()
    pruned, more = await row(
        connection, "SELECT pruned, more FROM tidemill.prune_v1(5000, 0, true, '{}', $1)", clock.now
    )
    assert (pruned, more) == (500, True)
    pruned, more = await row(
        connection, "SELECT pruned, more FROM tidemill.prune_v1(5000, 60000000, true, '{}', $1)", clock.now
    )
    assert (pruned, more) == (1_500, False)
    assert PRUNE_BUDGET == 20 * MILLISECOND
    assert PRUNE_LIMIT == 5_000


async def test_retention_goes_on_where_it_stopped(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, plain: Plain
) -> None:
    """Index entries of deleted rows stay while somebody holds the horizon back: walked once only."""
    await configure(engine, "q", QueueOptions(keep_completed=Keep(age=1.0)), now=clock.now)
    start = clock.now
    await finish(engine, claimant, clock, 3_000)
    clock.forward(100)
    connection = await plain()
    answer = "SELECT pruned, marks FROM tidemill.prune_v1($1, 60000000, $2, $3, $4)"
    pruned, marks = await row(connection, answer, 1_500, True, "{}", clock.now)
    (mark,) = json.loads(marks)["q"].values()
    assert (pruned, mark[3]) == (1_500, start + SECOND), "the end of the last one deleted"
    later = json.dumps({"q": {"4": [*mark[:3], start + 2 * SECOND]}})
    assert (await row(connection, answer, 5_000, False, later, clock.now))[0] == 1_000
    assert (await row(connection, answer, 5_000, True, later, clock.now))[0] == 500, "from the oldest end"


async def test_retention_by_a_large_count_is_checked_once_a_minute(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, plain: Plain
) -> None:
    await configure(engine, "q", QueueOptions(keep_completed=Keep(count=10_001)), now=clock.now)
    await finish(engine, claimant, clock, 2_000)
    connection = await plain()
    await connection.execute("UPDATE tidemill.queue SET keep_counts[1] = 10001")
    last_kept = await row(
        connection, "SELECT ended_at, born FROM tidemill.job ORDER BY ended_at, born OFFSET 99 LIMIT 1"
    )
    version = await connection.fetchval("SELECT version FROM tidemill.queue")
    known = json.dumps({"q": {"4": [version, *last_kept, -1]}})
    stale = json.dumps({"q": {"4": [version - 1, *last_kept, -1]}})
    answer = "SELECT pruned FROM tidemill.prune_v1(5000, 60000000, $1, $2, $3)"
    assert await connection.fetchval(answer, False, stale, clock.now) == 0, "found under other options"
    assert await connection.fetchval(answer, True, known, clock.now) == 0, "checked anew: all are kept"
    assert await connection.fetchval(answer, False, known, clock.now) == 100


async def test_announcements_and_counts_are_folded(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    connection = await plain()
    await configure(engine, "q", QueueOptions(per_key=Limit(concurrency=1)), now=clock.now)
    await engine.jobs.enqueue([a_job(key=str(n)) for n in range(20)], now=clock.now)
    await claimant.complete(*await claimant.take())
    assert await claimant.take() == []
    await engine.jobs.promote(now=clock.now)
    for table in ("lane_new", "queue_new", "freed", "finished_new", "lane", "parked"):
        assert await connection.fetchval(f"SELECT count(*) FROM tidemill.{table}") == 0, table


@pytest.mark.row("B1")
async def test_claims_stay_quick_under_a_snapshot_that_is_held_open(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """Dead index entries pile up and cannot be removed; a claim starts behind them."""
    reader = await plain()
    async with reader.transaction(isolation="repeatable_read", readonly=True):
        await reader.fetch("SELECT count(*) FROM tidemill.job")
        slowest = 0.0
        for _ in range(15):
            await engine.jobs.enqueue(some_jobs(1_000), now=clock.now)
            for _ in range(5):
                begin = time.perf_counter()
                runs = await claimant.take(most=200)
                slowest = max(slowest, time.perf_counter() - begin)
                await claimant.complete(*runs)
        begin = time.perf_counter()
        assert await claimant.take() == []
        idle = time.perf_counter() - begin
    assert slowest < 2.0, "a ceiling for any machine; ./dev bench measures"
    assert idle < 0.5


async def test_heartbeats_forget_claims_of_which_nothing_runs(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """What stands in the way of a heartbeat is what was claimed since the last one, however many jobs a held
    snapshot keeps from being removed; and a job that runs for long is still found."""
    connection = await plain()
    await engine.jobs.enqueue(some_jobs(12), now=clock.now)
    claims = [await claimant.take(most=2) for _ in range(3)]
    await claimant.complete(*claims[0], *claims[2])
    assert (await claimant.heartbeat()).lost == []
    marks = "SELECT array_agg(number ORDER BY number) FROM tidemill.claimed"
    known = f"SELECT oldest, ({marks}) FROM tidemill.claimant"
    assert tuple(await row(connection, known)) == (2, [2, 3])
    gone, *_ = claims[0]
    claimant.held[gone.fence] = gone.id
    assert (await claimant.heartbeat()).lost == [gone.fence]
    await engine.jobs.cancel([claims[1][0].id], now=clock.now)
    assert [ask.fence for ask in (await claimant.heartbeat()).stop_requests] == [claims[1][0].fence]
    await claimant.complete(*claims[1])
    await claimant.heartbeat()
    assert tuple(await row(connection, known)) == (3, [3]), "the last claim may be repeated"
    assert len(await claimant.take(most=2)) == 2


async def test_a_job_that_runs_for_long_keeps_only_its_own_claim_in_mind(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """A heartbeat goes by the claims of which something runs, not over all that came after the oldest of
    them."""
    connection = await plain()
    await engine.jobs.enqueue(some_jobs(12), now=clock.now)
    (long,) = await claimant.take(most=1)
    for _ in range(5):
        await claimant.complete(*await claimant.take(most=2))
        assert (await claimant.heartbeat()).lost == []
    marks = "SELECT array_agg(number ORDER BY number) FROM tidemill.claimed"
    assert await connection.fetchval(marks) == [1, 6]
    await engine.jobs.cancel([long.id], now=clock.now)
    assert [ask.fence for ask in (await claimant.heartbeat()).stop_requests] == [long.fence]
    assert await engine.jobs.retire(claimant.id, now=clock.now) == 1


@pytest.mark.parametrize("end", ["retire", "leave"])
async def test_nothing_is_remembered_of_the_claims_of_those_who_have_ended(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock, end: str
) -> None:
    """Sweeps scan the claims of all who are remembered. What a transaction holds is found later."""
    user = await plain()
    await engine.jobs.enqueue(some_jobs(6), now=clock.now)
    claims = [await claimant.take(most=2) for _ in range(3)]
    await claimant.complete(*claims[0])
    async with user.transaction():
        await user.execute("SELECT 1 FROM tidemill.job WHERE id = $1 FOR UPDATE", claims[1][0].id)
        if end == "retire":
            await engine.jobs.retire(claimant.id, now=clock.now)
        else:
            await engine.members.leave(claimant.member.id, now=clock.now)
        assert await user.fetchval("SELECT array_agg(number) FROM tidemill.claimed") == [2]
    sweeper = await a_claimant(engine, clock, name="host:2")
    for _ in range(11):
        clock.forward(1)
        await sweeper.heartbeat()
    assert (await engine.jobs.reclaim(sweeper.member.id, now=clock.now)).jobs == 1
    assert {run.id for run in await sweeper.take()} == {run.id for run in (*claims[1], *claims[2])}


async def test_a_claim_of_many_queues_lets_a_bounded_number_expire(
    engine: PostgresEngine, claimant: Claimant, clock: Clock
) -> None:
    for queue in "abc":
        await engine.jobs.enqueue(some_jobs(600, queue=queue, expires=SECOND), now=clock.now)
    clock.forward(5)
    await claimant.heartbeat()
    first = await engine.jobs.claim(claimant.request("a", "b", "c"), now=clock.now)
    assert (first.jobs, first.wait) == ([], 0)
    counts = {each.queue: each.in_state(JobState.DEAD) for each in await engine.inspect.counts(now=clock.now)}
    assert counts == {"a": 600, "b": 400, "c": 0}
    await engine.jobs.claim(claimant.request("a", "b", "c"), now=clock.now)
    counts = {each.queue: each.in_state(JobState.DEAD) for each in await engine.inspect.counts(now=clock.now)}
    assert counts == {"a": 600, "b": 600, "c": 600}


async def test_two_processes_share_a_limit_and_lose_no_permit(
    engine: PostgresEngine, claimant: Claimant, clock: Clock
) -> None:
    """Claims and settles of one key's gate cross each other; none of them leaves it parked for ever."""
    await configure(engine, "q", QueueOptions(per_key=Limit(concurrency=1)), now=clock.now)
    jobs = [a_job(key=key) for key in "abc" for _ in range(20)]
    await engine.jobs.enqueue(jobs, now=clock.now)
    other = Claimant(engine, clock, member=claimant.member)
    done: list[bytes] = []

    async def work(worker: Claimant) -> None:
        while len(done) < len(jobs):
            for run in await worker.take(most=2):
                await worker.complete(run)
                done.append(run.id)

    async with asyncio.timeout(60):
        await asyncio.gather(work(claimant), work(other))
    assert sorted(done) == sorted(ids_of(jobs))
