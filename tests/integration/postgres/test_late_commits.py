"""Scans for late commits: where they go on, where they end, and what they must not hide."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.integration.outages import until_it_works
from tests.integration.postgres.conftest import OURS, Connect, Plain, Servers
from tests.integration.postgres.test_failover import execute
from tests.integration.postgres.transacted import play
from tests.servers.fixtures import server_or_skip
from tests.servers.postgres import PostgresServer
from tidemill.engine.registry import connect as open_engine
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.engines.postgres.order import late_commits
from tidemill.engines.postgres.order.cursors import BUSY
from tidemill.engines.postgres.order.late_commits import ALL_EVERY
from tidemill.model.queues.queue import QueueOptions
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_claimant,
    a_job,
    configure,
    ids_of,
    some_jobs,
)

pytestmark = pytest.mark.row("B15")

UNDO = (
    "UPDATE tidemill.job SET state = 2, token = NULL, claimant = NULL, claim_no = NULL, back = false "
    "WHERE id = ANY ($1)"
)
"""As a server has them that has forgotten the claim."""


@pytest.fixture
async def still(engine: PostgresEngine, claimant: Claimant, monkeypatch: pytest.MonkeyPatch) -> Claimant:
    """A claimant whose connections stand, and that scans only when the test does."""
    monkeypatch.setattr(engine.late_commits, "begin", lambda: None)
    await claimant.take()
    await engine.late_commits.scan()
    return claimant


async def locked(connection: Any, jobs: Any) -> Any:
    """A transaction that has locked jobs, as a claim does that is about to die."""
    held = connection.transaction()
    await held.start()
    await connection.fetch("SELECT 1 FROM tidemill.job WHERE id = ANY ($1) FOR NO KEY UPDATE", ids_of(jobs))
    return held


async def until_passed(engine: PostgresEngine, claimant: Claimant, seq: int, *queues: str) -> None:
    """Claims that find nothing have moved the cursors of queues past a seq."""
    cursors = engine.jobs._claims.cursors
    async with asyncio.timeout(10):
        while min(cursors.plain(list(queues))[::2]) <= seq:
            assert await claimant.take(*queues) == []
            await asyncio.sleep(0.01)


async def store_in(connection: Any, engine: PostgresEngine, jobs: Any) -> int:
    """Store jobs in a user's transaction; the last of their seqs."""
    await play(connection, engine.transactions.enqueue(jobs))
    seq: int = await connection.fetchval(
        "SELECT max(seq) FROM tidemill.job WHERE id = ANY ($1)", ids_of(jobs)
    )
    return seq


async def scanned(
    engine: PostgresEngine, budget: int, *ranges: tuple[str, int, str, int, int], room: int = 1_000
) -> Any:
    columns = [list(column) for column in zip(*ranges, strict=True)]
    return await engine.store.change(engine.store.heartbeats, "scan_behind_v1", *columns, budget, room)


async def test_what_is_locked_during_a_scan_is_found_once_it_is_free(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock
) -> None:
    """The scan goes on: it is past these jobs when the claim that had them is rolled back."""
    jobs = some_jobs(6)
    await engine.jobs.enqueue(jobs, now=clock.now)
    held = await locked(await plain(), jobs[:3])
    assert ids_of(await still.take()) == ids_of(jobs[3:])
    for _ in range(3):
        await engine.late_commits.scan()
    assert engine.late_commits._scanned.new() == [], "everything was scanned"
    await held.rollback()
    assert await still.take() == []
    await engine.late_commits.scan()
    assert ids_of(await still.take()) == ids_of(jobs[:3])


async def test_what_was_locked_and_then_taken_is_left_alone(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock
) -> None:
    jobs = some_jobs(2)
    await engine.jobs.enqueue(jobs, now=clock.now)
    other = await plain()
    held = await locked(other, jobs[:1])
    assert ids_of(await still.take()) == ids_of(jobs[1:])
    await engine.late_commits.scan()
    await other.execute("UPDATE tidemill.job SET state = 3, token = 1 WHERE id = $1", jobs[0].id)
    await held.commit()
    await engine.late_commits.scan()
    assert engine.late_commits._held == []
    assert await still.take() == []


async def test_a_scan_goes_through_new_ranges_only(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock
) -> None:
    """A job below `scanned until` that nothing tells of stays unseen: that is what is saved."""
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert len(await still.take()) == 3
    await engine.late_commits.scan()
    await (await plain()).execute(UNDO, ids_of(jobs[:1]))
    for _ in range(3):
        await engine.late_commits.scan()
    assert await still.take() == []


async def test_a_scan_stops_at_its_bounds_and_says_where(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock
) -> None:
    for _ in range(6):
        await engine.jobs.enqueue(some_jobs(1_000), now=clock.now)
    other = await plain()
    ((first, last),) = await other.fetch("SELECT min(seq), max(seq) FROM tidemill.job")
    whole = ("q", 5, "", first, last + 1)
    again = ("q", 6, "", first, last + 1)
    reached, held, signals = await scanned(engine, 0, whole, again)
    assert list(reached) == [first + 1_000, first], "at least one span, of at most 1,000 jobs"
    assert list(held) == []
    assert set(signals) == {"ready:q"}
    marked = "SELECT count(*) FROM tidemill.job WHERE back"
    assert await other.fetchval(marked) == 1_000
    reached, *_ = await scanned(engine, 60_000_000, ("q", 5, "", reached[0], last + 1), again)
    assert list(reached) == [last + 1, last + 1]
    assert await other.fetchval(marked) == 6_000


async def test_a_scan_stops_where_too_much_is_locked_and_goes_on_elsewhere(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock
) -> None:
    jobs = [*some_jobs(1_000), *some_jobs(500)]
    await engine.jobs.enqueue(jobs[:1_000], now=clock.now)
    await engine.jobs.enqueue(jobs[1_000:], now=clock.now)
    other = await plain()
    transaction = await locked(other, jobs)
    free = a_job(priority=6)
    await engine.jobs.enqueue([free], now=clock.now)
    ((first, last),) = await other.fetch("SELECT min(seq), max(seq) FROM tidemill.job")
    ranges = ("q", 5, "", first, last + 1), ("q", 6, "", first, last + 1)
    reached, held, signals = await scanned(engine, 60_000_000, *ranges)
    assert (list(reached), len(held)) == ([first + 1_000, last + 1], 1_000)
    assert list(signals) == ["ready:q"]
    assert await other.fetchval("SELECT id FROM tidemill.job WHERE back") == free.id
    reached, held, _ = await scanned(engine, 60_000_000, *ranges, room=0)
    assert (list(reached), list(held)) == ([first, last + 1], [])
    await transaction.rollback()


async def test_a_scan_waits_while_too_much_is_locked(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody may have locked all there is: what is kept in mind for that has a bound."""
    monkeypatch.setattr(late_commits, "HELD_MOST", 2)
    jobs, more = some_jobs(2), some_jobs(2)
    await engine.jobs.enqueue([*jobs, a_job()], now=clock.now)
    held = await locked(await plain(), jobs)
    assert len(await still.take()) == 1
    await engine.late_commits.scan()
    assert sorted(engine.late_commits._held) == sorted(ids_of(jobs))
    await engine.jobs.enqueue([*more, a_job()], now=clock.now)
    also = await locked(await plain(), more)
    assert len(await still.take()) == 1
    await engine.late_commits.scan()
    assert sorted(engine.late_commits._held) == sorted(ids_of(jobs)), "no further"
    await held.rollback()
    await engine.late_commits.scan()
    await also.rollback()
    await engine.late_commits.scan()
    assert ids_of(await still.take()) == ids_of([*jobs, *more])


@pytest.mark.parametrize("purpose", ["claims", "heartbeats"])
async def test_a_new_connection_forgets_what_was_seen(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock, purpose: str
) -> None:
    """The server may have crashed, and forgotten the last claims."""
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert len(await still.take()) == 3
    await engine.late_commits.scan()
    other = await plain()
    await other.execute(UNDO, ids_of(jobs))
    assert await still.take() == []
    await other.execute(
        f"SELECT pg_terminate_backend(pid, 5000) {OURS} AND application_name = $1", f"tidemill {purpose}"
    )
    await still.heartbeat()
    await still.take(most=0)
    assert ids_of(await still.take()) == ids_of(jobs)


async def test_what_was_scanned_is_forgotten_with_the_cursors(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock
) -> None:
    """A job whose claim was undone is locked when the next claim passes it."""
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert len(await still.take()) == 3
    await engine.late_commits.scan()
    await (await plain()).execute(UNDO, ids_of(jobs))
    held = await locked(await plain(), jobs[:1])
    engine.jobs._claims.cursors.forget()
    assert ids_of(await still.take()) == ids_of(jobs[1:])
    await engine.late_commits.scan()
    await held.rollback()
    assert await still.take() == []
    await engine.late_commits.scan()
    assert ids_of(await still.take()) == ids_of(jobs[:1])


async def test_a_claim_sent_before_everything_was_forgotten_moves_no_cursor(
    engine: PostgresEngine, still: Claimant, clock: Clock
) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    store, claims, request = engine.store, engine.jobs._claims, still.request(most=2)
    before = claims.cursors.generation
    first, *rows = await store.rows(store.claims, "claim_plain_v1", *claims.parameters(request), clock.now)
    claims.cursors.forget()
    still.receive(engine.jobs._answer(request, first, rows, before))
    assert claims.cursors.plain(["q"]) == [0] * 22
    assert len(await still.take()) == 1


async def test_another_server_behind_the_same_connection_is_noticed(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock
) -> None:
    """Behind a pooler: by the moment of the server's start."""
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert len(await still.take()) == 3
    await engine.late_commits.scan()
    await (await plain()).execute(UNDO, ids_of(jobs))
    assert engine.late_commits._server is not None
    engine.late_commits._server -= 1
    await engine.late_commits.scan()
    assert ids_of(await still.take()) == ids_of(jobs)


async def test_every_so_often_everything_is_scanned_again(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock
) -> None:
    """Whatever was hidden is found then."""
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert len(await still.take()) == 3
    await engine.late_commits.scan()
    await (await plain()).execute(UNDO, ids_of(jobs[1:]))
    for _ in range(ALL_EVERY):
        assert await still.take() == []
        await engine.late_commits.scan()
        await engine.late_commits.once_a_lease()
    await engine.late_commits.scan()
    assert ids_of(await still.take()) == ids_of(jobs[1:])


async def a_claimant_when_it_answers(engine: PostgresEngine, clock: Clock) -> Claimant:
    """Of a new member: the old one's claims are as unknown as its heartbeats."""
    claimant: Claimant = await until_it_works(lambda: a_claimant(engine, clock))
    return claimant


async def until_followed(primary: PostgresServer, standby: PostgresServer) -> None:
    """What was committed is on the other server."""
    ((at,),) = await execute(primary, "SELECT pg_current_wal_lsn()::text")
    await until_true(standby, f"SELECT pg_last_wal_replay_lsn() >= '{at}'::pg_lsn")


async def cut_off(primary: PostgresServer, standby: PostgresServer) -> None:
    """The other server hears no more."""
    await execute(standby, "ALTER SYSTEM SET primary_conninfo = ''")
    await execute(standby, "SELECT pg_reload_conf()")
    await until_true(primary, "SELECT count(*) = 0 FROM pg_stat_replication")


async def until_true(server: PostgresServer, sql: str) -> None:
    async with asyncio.timeout(20):
        while not (await execute(server, sql))[0][0]:  # noqa: ASYNC110  (the server tells nobody)
            await asyncio.sleep(0.01)


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[PostgresEngine]:
    engine = await open_engine(url)
    assert isinstance(engine, PostgresEngine)
    yield engine
    await engine.close()


async def test_claims_that_a_crash_undid_are_found_at_once(servers: Servers, connect: Connect) -> None:
    """With durability=off a server that crashes may have forgotten what it answered."""
    server = servers(settings={"wal_writer_delay": "10s", "fsync": "on"})
    engine = await connect(server.url() + "?durability=off")
    clock = Clock()
    claimant = await a_claimant(engine, clock)
    assert await claimant.take() == []
    jobs = some_jobs(5)
    await engine.jobs.enqueue(jobs, now=clock.now)
    await engine.store.read("SELECT pg_switch_wal()")  # up to here it is on the disk
    taken = ids_of(await claimant.take())
    assert taken == ids_of(jobs)
    await asyncio.to_thread(server.kill)
    await asyncio.to_thread(server.start)
    other = await a_claimant_when_it_answers(engine, clock)
    assert ids_of(await other.take()) == taken


async def test_claims_that_a_replica_never_heard_of_are_found_at_once(engine_mode: str) -> None:
    primary = server_or_skip()
    standby = await asyncio.to_thread(primary.standby)
    try:
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        async with connected(f"postgresql://tidemill@{hosts}/postgres?connect_timeout=5") as engine:
            clock = Clock()
            claimant = await a_claimant(engine, clock)
            assert await claimant.take() == []
            jobs = some_jobs(5)
            await engine.jobs.enqueue(jobs, now=clock.now)
            await until_followed(primary, standby)
            await cut_off(primary, standby)
            taken = ids_of(await claimant.take())
            assert taken == ids_of(jobs)
            await asyncio.to_thread(primary.kill)
            await asyncio.to_thread(standby.promote)
            other = await a_claimant_when_it_answers(engine, clock)
            assert ids_of(await other.take()) == taken
    finally:
        primary.close()
        standby.close()


async def test_lanes_with_groups_are_scanned_too(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock
) -> None:
    """A busy one has a cursor; it gives all the time, and is not scanned from its start for that."""
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    user, late = await plain(), a_job(key="k")
    async with user.transaction():
        await play(user, engine.transactions.enqueue([late]))
        for _ in range(2):
            await engine.jobs.enqueue([a_job(key="k") for _ in range(BUSY)], now=clock.now)
            assert len(await still.take()) == BUSY
            await engine.late_commits.scan()
        await engine.jobs.enqueue([a_job(key="k")], now=clock.now)
        assert len(await still.take()) == 1
        await engine.late_commits.once_a_lease()
    assert await still.take() == [], "its cursor is past it"
    await engine.late_commits.scan()
    assert ids_of(await still.take()) == [late.id]


async def test_the_newest_transaction_of_all_is_found_when_it_ends_after_a_scan(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock
) -> None:
    """A snapshot names those that run below the newest that has ended: this one is not among them."""
    await engine.jobs.enqueue([a_job()], now=clock.now)
    assert len(await still.take()) == 1
    user, late = await plain(), a_job()
    async with user.transaction():
        await until_passed(engine, still, await store_in(user, engine, [late]), "q")
        await engine.late_commits.scan()
        assert engine.late_commits._scanned.new() == [], "the scan is past it"
    await engine.late_commits.scan()
    assert ids_of(await still.take()) == [late.id]


async def test_the_newest_transaction_is_known_for_as_long_as_it_runs(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock
) -> None:
    """Scan after scan carries it on, while it is the newest and when it is no more."""
    await engine.jobs.enqueue([a_job()], now=clock.now)
    assert len(await still.take()) == 1
    user, late = await plain(), a_job()
    async with user.transaction():
        await until_passed(engine, still, await store_in(user, engine, [late]), "q")
        for _ in range(3):
            await engine.late_commits.scan()
        await engine.jobs.enqueue([a_job()], now=clock.now)
        assert len(await still.take()) == 1
        for _ in range(3):
            await engine.late_commits.scan()
    await engine.late_commits.scan()
    assert ids_of(await still.take()) == [late.id]


@pytest.mark.parametrize("queues", [["q"], ["q", "other"]])
async def test_the_first_job_of_all_is_not_behind_the_cursors_of_idle_claims(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock, queues: list[str]
) -> None:
    """A sequence that was never asked has 1 for its last value, too."""
    await (await plain()).execute("ALTER SEQUENCE tidemill.seq RESTART")  # if it was used before
    for queue in queues:
        await configure(engine, queue, QueueOptions(), now=clock.now)
    await until_passed(engine, still, 0, *queues)
    job = a_job()
    await engine.jobs.enqueue([job], now=clock.now)
    assert ids_of(await still.take(*queues)) == [job.id]


async def test_what_was_passed_before_the_first_scan_is_found_by_it(
    engine: PostgresEngine, claimant: Claimant, plain: Plain, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many jobs there have been: all of them are not scanned for that."""
    monkeypatch.setattr(engine.late_commits, "begin", lambda: None)
    user, late, early = await plain(), a_job(), some_jobs(3)
    await user.execute("SELECT setval('tidemill.seq', 1000000000000)")
    async with user.transaction():
        await store_in(user, engine, [late])
        await engine.jobs.enqueue(early, now=clock.now)
        assert ids_of(await claimant.take()) == ids_of(early)
    assert await claimant.take() == []
    await engine.late_commits.scan()
    assert ids_of(await claimant.take()) == [late.id]


async def test_a_scan_that_fails_is_logged_and_the_next_one_comes(
    engine: PostgresEngine,
    claimant: Claimant,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    scan, scanned, failures = engine.late_commits.scan, asyncio.Event(), [ValueError("not one of ours")]

    async def failing_once() -> float:
        if failures:
            raise failures.pop()
        scanned.set()
        return await scan()

    monkeypatch.setattr(late_commits, "SCAN_S", 0.01)
    monkeypatch.setattr(engine.late_commits, "scan", failing_once)
    await claimant.take()
    async with asyncio.timeout(10):
        await scanned.wait()
    (told,) = [record for record in caplog.records if "a scan for late commits failed" in record.message]
    assert told.exc_text is not None or told.exc_info is not None


async def test_too_much_that_is_locked_in_one_queue_hides_nothing_in_another(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_commits, "HELD_MOST", 2)
    jobs, others = some_jobs(2), some_jobs(2, queue="other")
    await engine.jobs.enqueue([*jobs, a_job()], now=clock.now)
    held = await locked(await plain(), jobs)
    assert len(await still.take("q", "other", most=1)) == 1
    await engine.late_commits.scan()
    assert len(engine.late_commits._held) == 2, "there is no room for more"
    await engine.jobs.enqueue(others, now=clock.now)
    also = await locked(await plain(), others[:1])
    assert ids_of(await still.take("q", "other", most=1)) == ids_of(others[1:])
    await also.rollback()
    await engine.late_commits.scan()
    assert ids_of(await still.take("q", "other")) == ids_of(others[:1])
    await held.rollback()
    await engine.late_commits.scan()
    assert ids_of(await still.take("q", "other")) == ids_of(jobs)


async def test_a_large_transaction_is_marked_by_several_scans(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Heartbeats come in between. Until the last of them nothing counts as scanned: another's jobs would be
    below it. (Claims take one: those that find less than they want let their cursors go back a little.)"""
    monkeypatch.setattr(late_commits, "LATE_MOST", 3)
    user, other, many, late = await plain(), await plain(), some_jobs(8), a_job()
    async with user.transaction():
        await store_in(user, engine, many)
        await engine.jobs.enqueue([a_job()], now=clock.now)
        assert len(await still.take(most=1)) == 1
        assert await engine.late_commits.scan() == late_commits.SCAN_S
    marked = "SELECT count(*) FROM tidemill.job WHERE back"
    async with other.transaction():
        await store_in(other, engine, [late])
        await engine.jobs.enqueue([a_job()], now=clock.now)
        assert len(await still.take(most=1)) == 1
        assert await engine.late_commits.scan() == late_commits.REST_S
        assert await user.fetchval(marked) == 3
    assert await engine.late_commits.scan() == late_commits.REST_S
    assert await user.fetchval(marked) == 6
    assert await engine.late_commits.scan() == late_commits.SCAN_S
    assert sorted(ids_of(await still.take())) == sorted(ids_of([*many, late]))


async def test_a_large_transaction_whose_jobs_are_locked_is_kept_in_mind_as_a_whole(
    engine: PostgresEngine, still: Claimant, plain: Plain, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_commits, "LATE_MOST", 3)
    user, many = await plain(), some_jobs(5)
    async with user.transaction():
        await store_in(user, engine, many)
        await engine.jobs.enqueue([a_job()], now=clock.now)
        assert len(await still.take(most=1)) == 1
        await engine.late_commits.scan()
    held = await locked(await plain(), many)
    for _ in range(3):
        assert await engine.late_commits.scan() == late_commits.SCAN_S, "there is nothing to mark"
        assert len(engine.late_commits._held) <= 3
    await held.rollback()
    assert await engine.late_commits.scan() == late_commits.REST_S
    assert await engine.late_commits.scan() == late_commits.SCAN_S
    assert sorted(ids_of(await still.take())) == sorted(ids_of(many))
