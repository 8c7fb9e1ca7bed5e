"""What comes to stand behind a claim's cursor is found: late commits, rolled-back claims, jobs given back."""

import asyncio
import time

import msgspec
import pytest

from tests.integration.postgres.conftest import Connect, Plain
from tests.integration.postgres.test_connection_use import sent
from tests.integration.postgres.transacted import play
from tidemill.engines.postgres.cluster.queues import flat
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.model.queues.queue import Limit, QueueOptions
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_claimant,
    a_job,
    configure,
    ids_of,
    some_jobs,
)


async def take_within(claimant: Claimant, seconds: float) -> list[bytes]:
    """What claims find in this time, at the first success."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if runs := await claimant.take():
            return ids_of(runs)
        await asyncio.sleep(0.02)
    return []


@pytest.mark.row("F7")
async def test_a_late_commit_is_found_within_two_seconds(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    user, late = await plain(), a_job()
    async with user.transaction():
        await play(user, engine.transactions.enqueue([late]))
        early = some_jobs(5)
        await engine.jobs.enqueue(early, now=clock.now)
        assert ids_of(await claimant.take()) == ids_of(early)
        for _ in range(2):  # scans come by and do not see it either
            await engine.late_commits.scan()
        assert await claimant.take() == []
    assert await take_within(claimant, 2.0) == [late.id]


async def test_a_scan_while_a_claim_is_on_its_way_misses_nothing(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """The claim does not see the job, the scan sees it before the cursor, then the cursor goes past it."""
    user, late, store = await plain(), a_job(), engine.store
    await engine.late_commits.scan()
    async with user.transaction():
        await play(user, engine.transactions.enqueue([late]))
        await engine.jobs.enqueue(some_jobs(3), now=clock.now)
        request, claims = claimant.request(most=3), engine.jobs._claims
        first, *rows = await store.rows(
            store.claims, "claim_plain_v1", *claims.parameters(request), clock.now
        )
    await engine.late_commits.scan()
    claimant.receive(engine.jobs._answer(request, first, rows, claims.cursors.generation))
    assert max(claims.cursors.plain(["q"])) > 0, "past the job, which has the lowest seq"
    await engine.late_commits.scan()
    assert ids_of(await claimant.take()) == [late.id]


async def test_a_commit_on_its_way_is_found_by_the_next_claim(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """Not only by the scan that comes once a second: a claim leaves room for what is just being stored."""
    await engine.jobs.enqueue([a_job()], now=clock.now)
    assert len(await claimant.take()) == 1
    user, job = await plain(), a_job()
    async with user.transaction():
        await play(user, engine.transactions.enqueue([job]))
        assert await claimant.take() == []
    assert ids_of(await claimant.take()) == [job.id]


async def test_every_process_finds_a_late_commit(connect: Connect, plain: Plain, clock: Clock) -> None:
    """Whoever scans first marks it, for all."""
    one, other = await a_claimant(await connect(), clock), await a_claimant(await connect(), clock)
    user, late = await plain(), some_jobs(2)
    async with user.transaction():
        await play(user, one.engine.transactions.enqueue(late))  # type: ignore[union-attr]
        await one.engine.jobs.enqueue(some_jobs(4), now=clock.now)
        assert [len(await each.take(most=2)) for each in (one, other)] == [2, 2]
    engine = one.engine
    assert isinstance(engine, PostgresEngine)
    await engine.late_commits.scan()
    assert ids_of(await other.take()) == ids_of(late)


async def test_rows_of_a_rolled_back_claim_are_found_by_the_next_scan(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    jobs = some_jobs(6)
    await engine.jobs.enqueue(jobs, now=clock.now)
    other = await plain()
    held = other.transaction()
    await held.start()
    await other.fetch(
        "SELECT 1 FROM tidemill.job WHERE id = ANY ($1) FOR NO KEY UPDATE", ids_of(jobs[:3])
    )  # as a claim does that is about to die
    assert ids_of(await claimant.take()) == ids_of(jobs[3:])
    await held.rollback()
    assert await claimant.take() == []
    await engine.late_commits.scan()
    assert ids_of(await claimant.take()) == ids_of(jobs[:3])


async def test_the_scans_run_by_themselves(connect: Connect, clock: Clock, plain: Plain) -> None:
    engine = await connect()
    claimant = await a_claimant(engine, clock, heartbeat=200_000, lease=1_000_000)
    jobs = some_jobs(4)
    await engine.jobs.enqueue(jobs, now=clock.now)
    other = await plain()
    held = other.transaction()
    await held.start()
    await other.fetch("SELECT 1 FROM tidemill.job WHERE id = $1 FOR NO KEY UPDATE", jobs[0].id)
    assert ids_of(await claimant.take()) == ids_of(jobs[1:])
    await held.rollback()
    assert await take_within(claimant, 10.0) == [jobs[0].id]


async def test_jobs_released_behind_every_cursor_are_taken_first(connect: Connect, clock: Clock) -> None:
    one, other = await a_claimant(await connect(), clock), await a_claimant(await connect(), clock)
    jobs = some_jobs(9)
    await one.engine.jobs.enqueue(jobs, now=clock.now)
    first, second = await one.take(most=3), await other.take(most=3)
    await other.release(*second)
    await one.release(first[1])
    assert ids_of(await one.take(most=3)) == ids_of([jobs[1], jobs[3], jobs[4]])
    assert ids_of(await other.take()) == ids_of([jobs[5], *jobs[6:]])


async def test_a_claim_in_flight_holds_up_nobody(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """Rows that another claim is taking are passed over, not waited for."""
    jobs = some_jobs(4)
    await engine.jobs.enqueue(jobs, now=clock.now)
    other = await plain()
    async with other.transaction():
        await other.fetch("SELECT 1 FROM tidemill.job WHERE id = $1 FOR NO KEY UPDATE", jobs[0].id)
        async with asyncio.timeout(5):
            assert ids_of(await claimant.take()) == ids_of(jobs[1:])


async def test_an_enqueue_never_waits_for_a_users_transaction(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    user = await plain()
    await configure(engine, "fair", QueueOptions(fair_by="key"), now=clock.now)
    async with user.transaction():
        await play(user, engine.transactions.enqueue([a_job(queue="new"), a_job(queue="fair", key="k")]))
        async with asyncio.timeout(5):
            await engine.jobs.enqueue([a_job(queue="new"), a_job(queue="fair", key="k")], now=clock.now)
            assert len(await claimant.take("new", "fair")) == 2
            await engine.jobs.promote(now=clock.now)
            await engine.queues.pause("new", now=clock.now)
            await engine.queues.resume("new", now=clock.now)


async def test_jobs_stored_under_options_that_changed_meanwhile_are_found(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """A transaction that was open while the queue's lanes were cut otherwise."""
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    user, jobs = await plain(), [a_job(key=key) for key in "aab"]
    async with user.transaction():
        await play(user, engine.transactions.enqueue(jobs))
        await configure(engine, "q", QueueOptions(), now=clock.now)
        assert await claimant.take() == []
    assert ids_of(await claimant.take()) == ids_of(jobs)


async def test_jobs_stored_while_a_change_of_options_was_not_committed_are_found(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """Their transaction is younger than the change, and yet it knows only what was before it."""
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    operator, user, jobs, options = (
        await plain(),
        await plain(),
        [a_job(key=key) for key in "aab"],
        QueueOptions(),
    )
    change = operator.transaction()
    await change.start()
    await operator.execute("SET LOCAL search_path TO tidemill")
    await operator.execute(
        "SELECT put_options_v1('q', $1, $2, $3)",
        msgspec.json.encode(options), msgspec.json.encode(flat(options)).decode(), clock.now,
    )  # fmt: skip
    async with user.transaction():
        await play(user, engine.transactions.enqueue(jobs))
        await change.commit()
        for _ in range(3):
            assert await claimant.take() == []
    assert ids_of(await claimant.take()) == ids_of(jobs)
    assert await user.fetchval("SELECT reshaped IS NULL FROM tidemill.queue WHERE name = 'q'")


async def test_jobs_stored_by_an_old_snapshot_are_found_once_a_lease(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """A transaction that will never see the options as they are now, begun long before it stores anything."""
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    user, jobs = await plain(), [a_job(key=key) for key in "aab"]
    async with user.transaction(isolation="repeatable_read"):
        await user.execute("SELECT count(*) FROM tidemill.queue")
        await configure(engine, "q", QueueOptions(), now=clock.now)
        for _ in range(3):
            assert await claimant.take() == []
        await play(user, engine.transactions.enqueue(jobs))
    await engine.late_commits.once_a_lease()
    assert ids_of(await claimant.take()) == ids_of(jobs)


async def test_jobs_stored_by_an_old_snapshot_stay_within_the_limits_of_their_task(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    """They stand in a lane without a group, with those of other tasks, which go on while they wait."""
    await configure(engine, "q", QueueOptions(concurrency=100), now=clock.now)
    limited, others = [a_job(task="slow") for _ in range(3)], [a_job(task="quick") for _ in range(2)]
    user = await plain()
    async with user.transaction(isolation="repeatable_read"):
        await user.execute("SELECT count(*) FROM tidemill.queue")
        options = QueueOptions(concurrency=100, per_task={"slow": Limit(concurrency=1)})
        await configure(engine, "q", options, now=clock.now)
        for _ in range(3):
            assert await claimant.take() == []
        await play(user, engine.transactions.enqueue([*limited, *others]))
    await engine.late_commits.scan()
    left = ids_of(limited)
    taken = await claimant.take()
    assert ids_of(taken) == [left.pop(0), *ids_of(others)]
    while left:
        assert await claimant.take() == []
        await engine.late_commits.scan()
        await claimant.complete(*taken)
        taken = await claimant.take()
        assert ids_of(taken) == [left.pop(0)]


async def test_an_idle_claim_writes_nothing(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock
) -> None:
    other = await plain()
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await claimant.complete(*await claimant.take())
    assert await claimant.take() == []
    await sent(engine)
    before = await other.fetchval("SELECT pg_current_wal_insert_lsn()::text")
    for _ in range(20):
        assert await claimant.take() == []
    after = await other.fetchval("SELECT pg_current_wal_insert_lsn()::text")
    written = await other.fetchval("SELECT $1::text::pg_lsn - $2::text::pg_lsn", after, before)
    assert written < 2_000, "a checkpoint or a vacuum may write; twenty claims would write more"
