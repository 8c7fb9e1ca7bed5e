"""Every statement can be prepared, and those that run often find their rows by an index."""

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.integration.postgres.conftest import Plain
from tidemill.engine.shared.statements import load_statements
from tidemill.engines import postgres
from tidemill.engines.postgres.engine import PostgresEngine
from tidemill.engines.postgres.jobs.claim import ClaimMemory
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Failed, Started
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.model.time import SECOND
from tidemill.model.view import JobFilter
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_failure,
    a_job,
    completed,
    configure,
    settlement,
    some_jobs,
)

STATEMENTS = {
    f"{source}.{name}": text
    for source in sorted(Path(file.name).stem for file in files(postgres).joinpath("sql").iterdir())
    for name, text in load_statements(postgres.__name__, source).items()
}
MANY = 5_000


@pytest.mark.parametrize("name", STATEMENTS)
async def test_every_statement_can_be_prepared(engine: PostgresEngine, plain: Plain, name: str) -> None:
    await (await plain()).prepare(engine.store.sql(STATEMENTS[name]))


async def test_every_function_that_is_called_can_be_prepared(engine: PostgresEngine, plain: Plain) -> None:
    connection = await plain()
    sources = [file.read_text("utf-8") for file in Path(postgres.__file__).parent.rglob("*.py")]
    called = {name for source in sources for name in re.findall(r'"(\w+_v\d+)"', source)}
    assert len(called) > 20
    for name in sorted(called):
        rows = await connection.fetch(
            "SELECT pronargs FROM pg_proc WHERE pronamespace = 'tidemill'::regnamespace AND proname = $1",
            name,
        )
        assert rows, f"the database has no {name}"
        marks = ", ".join(f"${number}" for number in range(1, rows[0][0] + 1))
        await connection.prepare(f"SELECT * FROM tidemill.{name}({marks})")


async def test_every_function_has_its_version_in_its_name_and_is_valid(plain: Plain, url: str) -> None:
    connection = await plain()
    rows = await connection.fetch("SELECT proname FROM pg_proc WHERE pronamespace = 'tidemill'::regnamespace")
    names = [row[0] for row in rows]
    assert len(names) > 50
    unversioned = [name for name in names if not re.fullmatch(r"\w+_v\d+", name)]
    assert unversioned == ["enqueue"], "only what users call has a name for ever"


async def test_there_is_no_trigger(plain: Plain) -> None:
    assert await (await plain()).fetchval("SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal") == 0


class Plans:
    """The plans of everything that one connection runs, those inside functions too."""

    def __init__(self, connection: "asyncpg.Connection[Any]") -> None:
        self.connection = connection
        self.texts: list[str] = []

    async def begin(self) -> "Plans":
        await self.connection.execute(
            "LOAD 'auto_explain'; SET auto_explain.log_min_duration = 0; SET client_min_messages = log; "
            "SET auto_explain.log_nested_statements = on; SET auto_explain.log_analyze = off"
        )
        self.connection.add_log_listener(lambda _, message: self.texts.append(str(message.message)))
        return self

    def of(self, part: str) -> str:
        """The plans of the statements that contain this."""
        found = [text for text in self.texts if part in text]
        assert found, f"nothing ran with {part!r}"
        return "\n".join(found)


async def fill(engine: PostgresEngine, clock: Clock, **options: Any) -> None:
    """Some thousand jobs of which most are of no interest to a claim. No statistics are gathered."""
    for at in range(0, MANY, 1_000):
        delay = 0 if at == 0 else 10_000 * SECOND
        await engine.jobs.enqueue(some_jobs(1_000, delay=delay, **options), now=clock.now)


async def test_a_claim_finds_its_jobs_by_the_index(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, plain: Plain
) -> None:
    await fill(engine, clock)
    connection = await plain()
    plans = await Plans(connection).begin()
    request = ClaimMemory().parameters(claimant.request(most=100, suspects=2))
    rows = await connection.fetch(
        f"SELECT * FROM tidemill.claim_plain_v1({', '.join(f'${n}' for n in range(1, 14))})",
        *request,
        clock.now,
    )
    assert len(rows) == 101
    choice = plans.of("CROSS JOIN LATERAL")
    assert "Index Scan using job_ready on job" in choice
    assert "Sort" not in choice, "rows are to be locked one by one, as they are taken"
    taking = plans.of("SET state = 3")
    assert "Tid Scan on job" in taking
    assert "Seq Scan on job" not in "\n".join(plans.texts)


async def test_a_claim_of_lanes_finds_its_jobs_by_the_index(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, plain: Plain
) -> None:
    options = QueueOptions(concurrency=50, per_key=Limit(concurrency=2))
    await configure(engine, "q", options, now=clock.now)
    await engine.jobs.enqueue([a_job(key=str(n % 30)) for n in range(1_000)], now=clock.now)
    connection = await plain()
    plans = await Plans(connection).begin()
    request = ClaimMemory().parameters(claimant.request(most=100, suspects=2))
    rows = await connection.fetch(
        f"SELECT * FROM tidemill.claim_plain_v1({', '.join(f'${n}' for n in range(1, 14))})",
        *request,
        clock.now,
    )
    assert len(rows) == 51
    assert "job_ready" in plans.of("FROM lane_jobs_v1(")
    assert "job_held_key" in plans.of("job.key = k.key")
    assert "lane_open" in plans.of("DISTINCT ON (u.late, u.lane)")
    assert "Seq Scan on job" not in "\n".join(plans.texts)


async def test_a_claim_finds_what_stands_aside_by_its_own_index(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, plain: Plain
) -> None:
    await fill(engine, clock)
    assert (await claimant.claim(most=1, unknown=("t",))).wait == 0
    connection = await plain()
    plans = await Plans(connection).begin()
    request = ClaimMemory().parameters(claimant.request(most=100, suspects=2))
    rows = await connection.fetch(
        f"SELECT * FROM tidemill.claim_plain_v1({', '.join(f'${n}' for n in range(1, 14))})",
        *request,
        clock.now,
    )
    assert len(rows) == 101
    for part in ("task > v_task", "(j.priority, j.suspect, j.lane) >", "ORDER BY j.seq LIMIT v_most"):
        assert "Index Scan using job_aside on job" in plans.of(part).replace("Only Scan", "Scan"), part
        assert "Sort" not in plans.of(part), part
    assert "Seq Scan on job" not in "\n".join(plans.texts)


async def test_a_settle_goes_by_id_and_token_alone(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, plain: Plain
) -> None:
    """With the state in the condition the planner would walk every running job."""
    await fill(engine, clock)
    runs = await claimant.take(most=100)
    connection = await plain()
    plans = await Plans(connection).begin()
    engine.store.settles.adopt(connection)
    await engine.jobs.settle([completed(run) for run in runs], now=clock.now)
    settling = plans.of("SET state = 4")
    assert "Index Scan using job_pkey on job" in settling
    assert "job_running" not in settling


@pytest.mark.parametrize("analyzed", [False, True])
async def test_the_scan_for_late_commits_goes_by_transaction(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, plain: Plain, analyzed: bool
) -> None:
    """Left alone the planner prefers the index by seq, and walks everything behind the cursor."""
    user, connection = await plain(), await plain()
    await fill(engine, clock)
    await claimant.take(most=1)
    if analyzed:
        await user.execute("ANALYZE tidemill.job")
    plans = await Plans(connection).begin()
    engine.store.heartbeats.adopt(connection)
    async with user.transaction():
        await user.execute("SELECT pg_current_xact_id()")
        await claimant.take(most=100)
        await engine.late_commits.scan()
    await engine.late_commits.scan()
    text = plans.of("xid >= e.first")
    assert "Index Scan using job_late" in text
    assert "job_ready" not in text


@pytest.mark.parametrize("analyzed", [False, True])
async def test_the_scan_behind_the_cursors_goes_by_seq(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, plain: Plain, analyzed: bool
) -> None:
    """By another index it would scan everything that was ever ready."""
    await fill(engine, clock)
    await claimant.take(most=1)
    await claimant.take(most=100)
    connection = await plain()
    if analyzed:
        await connection.execute("ANALYZE tidemill.job")
    plans = await Plans(connection).begin()
    engine.store.heartbeats.adopt(connection)
    await engine.late_commits.scan()
    text = plans.of("NOT back\n")
    assert "Index Scan using job_ready" in text
    assert re.search(r"Index Cond: .*queue.*priority.*suspect.*lane.*seq >=.*seq <", text)
    assert "Index Scan using job_pkey" in plans.of("SET back = true")
    await engine.late_commits.once_a_lease()
    assert "Index Scan using job_ready" in plans.of("lane > ''")
    assert "Seq Scan on job" not in "\n".join(plans.texts)


@pytest.mark.parametrize("analyzed", [False, True])
async def test_heartbeats_and_sweeps_go_claim_by_claim(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, plain: Plain, analyzed: bool
) -> None:
    """By claimant alone they would walk everything that it ever took."""
    await fill(engine, clock)
    runs = [await claimant.take(most=1) for _ in range(3)]
    connection = await plain()
    if analyzed:
        await connection.execute("ANALYZE tidemill.job, tidemill.claimed, tidemill.claimant")
    plans = await Plans(connection).begin()
    engine.store.heartbeats.adopt(connection)
    await claimant.complete(*runs[1])
    await claimant.heartbeat()
    clock.forward(11)
    other = Claimant(engine, clock, name="other")
    for _ in range(12):
        await other.heartbeat()
        clock.forward(1)
    await other.heartbeat()
    assert (await engine.jobs.reclaim(other.member.id, now=clock.now)).jobs == 2
    found = re.findall(r"using job_running on job j.*\n\s*Index Cond: (.*)", "\n".join(plans.texts))
    assert len(found) >= 5, (
        "heartbeat: what is held, what is to be cancelled, what is over; reclaim; what was left"
    )
    assert all("claim_no = " in condition for condition in found)
    marks = re.findall(r"using claimed_pkey on claimed m.*\n\s*Index Cond: (.*)", "\n".join(plans.texts))
    assert len(marks) >= 5
    assert all("number >= " in condition for condition in marks), "from the oldest on"


@pytest.mark.parametrize("rows", [None, 0, 1, 10])
async def test_plans_made_for_a_nearly_empty_table_are_good_for_a_full_one(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, plain: Plain, rows: int | None
) -> None:
    """A worker waits on a queue that is empty most of the time, the table is analyzed, and then there is a
    burst. Walking the table once for 100 named jobs made a settle take 0.9 s at 20,000 jobs."""
    connection = await plain()
    if rows is not None:
        if rows:
            await engine.jobs.enqueue(some_jobs(rows), now=clock.now)
            await claimant.complete(*await claimant.take(most=rows))
        await connection.execute("VACUUM ANALYZE tidemill.job, tidemill.claimed, tidemill.claimant")
    texts: list[str] = []
    store = engine.store
    for line in (store.claims, store.settles, store.enqueues, store.heartbeats, store.commands):
        plans = await Plans(await plain()).begin()
        plans.texts = texts
        line.adopt(plans.connection)
    parent = a_job()
    await engine.jobs.enqueue([parent, a_job(after=(parent.id,)), *some_jobs(8)], now=clock.now)
    runs = await claimant.take(most=9)
    await engine.jobs.watch([runs[0].id], waiter="me", ttl=SECOND, now=clock.now)
    await claimant.write(runs[0], Started())
    await claimant.complete(*runs[:3])
    await claimant.settle(completed(runs[3]), settlement(runs[4], Failed(failure=a_failure())))
    await claimant.release(*runs[5:7])
    await store.change(store.heartbeats, "scan_behind_v1", ["q"], [5], [""], [0], [1_000_000], 1_000_000, 10)
    await engine.late_commits.scan()
    await claimant.heartbeat()
    await engine.members.leave(claimant.member.id, now=clock.now)
    assert len(texts) > 50
    assert walks(texts) == []
    for part, index in {"j.back AND j.queue": "job_back", "j.suspect AND": "job_suspect"}.items():
        (probe,) = {found for text in texts if part in text for found in re.findall(rf"using {index}", text)}
        assert probe, "not among all that were ever ready"


def walks(plans: list[str]) -> list[str]:
    """The plans that read all jobs that an index has."""
    return [text for text in plans if re.search(r"Scan using \w+ on job\b.*\n(?!\s+Index Cond)", text)]


@pytest.mark.parametrize("state", JobState)
async def test_a_list_goes_by_an_index(engine: PostgresEngine, plain: Plain, state: JobState) -> None:
    connection = await plain()
    await connection.execute("SET enable_seqscan = off; SET enable_sort = off")
    plans = await Plans(connection).begin()
    engine.store._readers[0].adopt(connection)
    await engine.jobs.enqueue([a_job()])
    await engine.inspect.list(JobFilter(state=state, queue="q"))
    text = plans.of('FROM "tidemill".shown WHERE')
    if state is not JobState.RUNNING:  # the few running ones are sorted
        assert "Sort" not in text
    assert "Seq Scan on job" not in text


async def test_a_rate_reads_the_log_of_its_own_gate_alone(
    engine: PostgresEngine, claimant: Claimant, clock: Clock, plain: Plain
) -> None:
    """With another collation on one of its columns, the key of the log would be used only up to that one."""
    options = QueueOptions(per_key=Limit(rate=Rate(100, per=1)))
    await configure(engine, "q", options, now=clock.now)
    await engine.jobs.enqueue([a_job(key=str(n)) for n in range(3)], now=clock.now)
    plans = await Plans(await plain()).begin()
    engine.store.claims.adopt(plans.connection)
    assert len(await claimant.take(most=3)) == 3
    found = re.findall(r"using start_pkey on start.*\n\s*Index Cond: (.*)", plans.of("sum(count)"))
    assert found
    for condition in found:
        assert all(f"{column} " in condition for column in ("queue", "kind", "name", "step"))
