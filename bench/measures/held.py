"""One transaction that stays open while workers work: what it costs, and what it brings when it commits.

While it is open, nothing that is replaced or deleted can be removed. It is held for `plan.held_s`, under load
all the time; beside a limited queue for `LIMITED_S` at most. The slowest claim is the server's own account.
"""

import time
from typing import Any

import asyncpg

from bench.product import Product
from bench.report import Figure
from bench.rounds import Comparison, Question, Turn
from bench.stores import PostgresStore
from tidemill.cli.bench.measures import ended
from tidemill.cli.bench.run import MANY_SLOTS
from tidemill.cli.bench.workers import BenchWorkers, declare
from tidemill.engine.connections import aplay
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import NewJob
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import SECOND

WANTED = 0.7
CLAIM_MS = 50.0
LATE_S = 2.0
PROCESSES = 2
ROOMY = QueueOptions(concurrency=10_000)
"""A limit that holds nobody back: what remains is the cost of asking."""
LIMITED_S = 30.0
"""A limited queue is only reported on: it is not held for longer than this."""

_READER = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SELECT count(*) FROM tidemill.member"
_WRITER = "BEGIN; SELECT pg_current_xact_id()"
_SLOWEST = "SELECT max(max_exec_time) FROM pg_stat_statements WHERE query ~ 'claim_plain_v1|settle_v1'"


async def reader(bench: Product) -> list[Comparison | Figure]:
    """A REPEATABLE READ reader, which keeps its snapshot."""
    return await _held(bench, "reader", _READER)


async def writer(bench: Product) -> list[Comparison | Figure]:
    """A writer that has written and does nothing more."""
    return await _held(bench, "writer", _WRITER)


async def _held(bench: Product, who: str, begin: str) -> list[Comparison | Figure]:
    found: list[Comparison | Figure] = []
    session = await _session(bench)
    try:
        for limits, options in (("", QueueOptions()), (", a limited queue", ROOMY)):
            async with bench.workers(PROCESSES, MANY_SLOTS) as workers:
                await declare(bench.engine, workers.queue, options)
                held_s = min(bench.plan.held_s, LIMITED_S) if limits else bench.plan.held_s
                case = f"a {who} for {held_s:g} s{limits}"
                wanted = None if limits else WANTED
                question = Question(measure="held", case=case, against="before", wanted=wanted)
                comparison, slowest = await _under(bench, workers, session, begin, question, held_s)
                most = None if limits else CLAIM_MS
                found += [comparison, Figure(f"slowest claim: {case}", "ms", [slowest], most)]
    finally:
        await session.close()
    return found


async def _under(
    bench: Product,
    workers: BenchWorkers,
    session: "asyncpg.Connection[Any]",
    begin: str,
    question: Question,
    held_s: float,
) -> tuple[Comparison, float]:
    """Some turns before, then turns as long as the transaction is open, of which the last ones count."""
    rounds, turn = bench.plan.rounds, bench.make.through(workers, bench.app.in_loop)
    advance = bench.steps.begin(question.case, rounds + 1)
    before = []
    for _ in range(rounds):
        before.append(await turn())
        advance()
    await session.execute(begin)
    await session.execute("SELECT pg_stat_statements_reset()")
    during: list[Turn] = []
    until = time.monotonic() + held_s
    while len(during) < rounds or time.monotonic() < until:
        during.append(await turn())
    slowest: float = await session.fetchval(_SLOWEST)
    await session.execute("ROLLBACK")
    advance()
    return Comparison(question=question, ours=during[-rounds:], reference=before), slowest


async def late(bench: Product) -> list[Figure]:
    """A job that was enqueued at the beginning of a long transaction: claims have gone past it long ago."""
    engine, waits = bench.engine, []
    transactions = engine.transactions
    assert transactions is not None
    advance = bench.steps.begin("late", bench.plan.rounds)
    session = await _session(bench)
    try:
        async with bench.workers(PROCESSES, MANY_SLOTS) as workers:
            turn = bench.make.through(workers, bench.app.in_loop)
            for number in range(bench.plan.rounds):
                job = NewJob(id=new_id(), task=bench.app.stamp.name, queue=workers.queue, body=b"[[],{}]")
                await session.execute("BEGIN")
                await aplay(session, transactions.enqueue([job]))
                until = time.monotonic() + (bench.plan.held_s if number == 0 else 0)
                await turn()
                while time.monotonic() < until:
                    await turn()
                committed = await engine.now()
                await session.execute("COMMIT")
                await ended(engine, job.id)
                (record,) = await engine.inspect.get([job.id])
                assert record is not None
                waits.append(((record.claimed_at or 0) - committed) / SECOND)
                advance()
    finally:
        await session.close()
    return [
        Figure(
            f"a job of a {bench.plan.held_s:g} s transaction: claimed after its commit", "s", waits, LATE_S
        )
    ]


async def _session(bench: Product) -> "asyncpg.Connection[Any]":
    """A connection of somebody else's, on a database that accounts for statements from now on."""
    store = bench.plan.store
    assert isinstance(store, PostgresStore)
    session: asyncpg.Connection[Any] = await asyncpg.connect(store.raw_place("product"))
    await session.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    await session.execute("ALTER DATABASE product SET pg_stat_statements.track = 'top'")
    return session
