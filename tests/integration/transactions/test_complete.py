"""`complete` in a transaction of the running code's own: its rows and the outcome commit together."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from tests.integration.transactions import awaiting, blocking
from tests.logs import warnings_about
from tidemill import (
    AlreadyCompleted,
    Job,
    JobFailed,
    JobState,
    NoTransaction,
    Retry,
    StaleRun,
    SyncInLoop,
    Tidemill,
    UnknownJob,
    current_job,
)
from tidemill.engine.registry import connect
from tidemill.model.jobs.run import Release
from tidemill.task.settings import Settings

AT_ONCE = Retry(attempts=3, base=0, jitter="none")

in_threads = pytest.mark.parametrize(("engine_mode", "kind"), blocking.WAYS, ids=blocking.NAMES)
on_the_loop = pytest.mark.parametrize(("engine_mode", "kind"), awaiting.WAYS, ids=awaiting.NAMES)
simply = pytest.mark.parametrize(
    ("engine_mode", "kind"), [("sqlite-file", blocking.Sqlite3), ("postgres-server", blocking.Psycopg)]
)
on_postgres = pytest.mark.parametrize(("engine_mode", "kind"), [("postgres-server", blocking.Psycopg)])


@pytest.fixture
async def app(url: str) -> AsyncIterator[Tidemill]:
    """An app whose member sends heartbeats often, and the user's table."""
    made = Tidemill(settings=Settings.load(url=url, heartbeat=0.1, lease=0.5, sweep=0.1))
    with pytest.raises(UnknownJob):
        await made.job("ab" * 16).ainfo()
    plain: Any = blocking.Psycopg(url) if url.startswith("postgresql") else blocking.Sqlite3(url)
    plain.run("CREATE TABLE IF NOT EXISTS orders (number integer)")
    plain.run("DELETE FROM orders")
    plain.commit()
    plain.close()
    yield made
    await made.aclose()


def orders(url: str) -> list[int]:
    plain: Any = blocking.Psycopg(url) if url.startswith("postgresql") else blocking.Sqlite3(url)
    rows = plain.run("SELECT number FROM orders ORDER BY number")
    plain.close()
    return [row[0] for row in rows]


async def outcome(job: Job[Any]) -> Any:
    return await job.aresult(timeout=20)


@pytest.mark.row("B14", "F7")
async def heartbeats(app: Tidemill, number: int) -> None:
    """Until its one member has sent so many more."""
    for _ in range(number):
        (before,) = await app.amembers()
        while await app.amembers() == [before]:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@in_threads
async def test_rows_and_outcome_from_a_thread(
    app: Tidemill, url: str, kind: type[blocking.Way], caplog: pytest.LogCaptureFixture
) -> None:
    @app.task
    def order(number: int) -> str:
        job = current_job()
        way = kind(url)
        way.begin()
        way.run(f"INSERT INTO orders VALUES ({number})")
        job.log.info("almost")
        job.progress(1, total=2)
        job.complete("in the transaction", transaction=way.connection)
        way.commit()
        way.close()
        return "not used"

    async with app.worker():
        job = await order.aenqueue(7)
        assert await outcome(job) == "in the transaction"
        record = await job.ainfo()
        assert (record.state, record.attempts, record.error) == (JobState.COMPLETED, 1, None)
        assert record.progress is not None
        assert [line.message for line in await lines(url, job)] == ["almost"]
    assert orders(url) == [7]
    assert warnings_about(job.id, caplog) == []


async def lines(url: str, job: Job[Any]) -> list[Any]:
    engine = await connect(url)
    try:
        return list(await engine.inspect.log(job.uuid.bytes))
    finally:
        await engine.close()


@pytest.mark.row("B14", "F7")
@on_the_loop
async def test_rows_and_outcome_from_the_loop(app: Tidemill, url: str, kind: type[awaiting.Way]) -> None:
    @app.task
    async def order(number: int) -> str:
        way = kind(url)
        await way.open()
        await way.begin()
        await way.run(f"INSERT INTO orders VALUES ({number})")
        current_job().log.info("almost")
        await current_job().acomplete("in the transaction", transaction=way.connection)
        await way.commit()
        await way.close()
        return "not used"

    async with app.worker():
        job = await order.aenqueue(7)
        assert await outcome(job) == "in the transaction"
        assert [line.message for line in await lines(url, job)] == ["almost"]
    assert orders(url) == [7]


@simply
async def test_a_result_that_cannot_be_stored_is_the_end(
    app: Tidemill, url: str, kind: type[blocking.Way]
) -> None:
    """Dead at once, as one that is returned: the next attempt would give the same."""

    @app.task(retry=AT_ONCE)
    def order() -> None:
        way = kind(url)
        try:
            way.run("INSERT INTO orders VALUES (1)")
            current_job().complete({1, 2}, transaction=way.connection)
        finally:
            way.close()

    async with app.worker():
        job = await order.aenqueue()
        with pytest.raises(JobFailed, match=r"after 1 of .*the result of \S+order, a set: "):
            await outcome(job)
    assert orders(url) == []


@pytest.mark.row("B14")
@simply
async def test_a_rollback_is_a_failure_and_the_next_attempt_counts(
    app: Tidemill, url: str, kind: type[blocking.Way]
) -> None:
    keys: list[str] = []

    @app.task(retry=AT_ONCE)
    def order() -> None:
        attempt = current_job().attempt
        keys.append(current_job().idempotency_key)
        way = kind(url)
        way.run(f"INSERT INTO orders VALUES ({attempt})")
        current_job().complete(transaction=way.connection)
        try:
            if attempt == 1:
                raise OSError("after complete, before the commit")
            if attempt == 2:
                return  # without a commit
            way.commit()
        finally:
            way.close()

    async with app.worker():
        job = await order.aenqueue()
        assert await outcome(job) is None
        record = await job.ainfo()
        assert record.attempts == 3
        assert len(keys) == 3
        assert len(set(keys)) == 1, "for outside effects: the same over all attempts"
        assert [each.error for each in record.failures] == ["OSError", "tidemill.model.errors.NotCommitted"]
        assert "commit before the function returns" in record.failures[1].message
    assert orders(url) == [3]


@pytest.mark.row("B14")
@simply
async def test_what_happens_after_the_commit_changes_nothing(
    app: Tidemill, url: str, kind: type[blocking.Way], caplog: pytest.LogCaptureFixture
) -> None:
    """As when the reply of the COMMIT is lost: the code sees an error, the engine knows better."""

    @app.task(retry=AT_ONCE)
    def order() -> str:
        way = kind(url)
        way.run("INSERT INTO orders VALUES (1)")
        current_job().complete("first", transaction=way.connection)
        way.commit()
        way.close()
        raise ConnectionError("the server closed the connection unexpectedly")

    async with app.worker():
        job = await order.aenqueue()
        assert await outcome(job) == "first"
    record = await job.ainfo()
    assert (record.attempts, record.failures) == (1, ())
    assert orders(url) == [1]
    assert "completed in its transaction, and then failed: ConnectionError" in caplog.text


@pytest.mark.row("B14")
@simply
async def test_a_transaction_may_be_tried_again(app: Tidemill, url: str, kind: type[blocking.Way]) -> None:
    """After a serialization failure, say; and one that had committed is told from one that had not."""
    told: list[str] = []

    @app.task
    def order() -> int:
        for number in (1, 2, 3):
            way = kind(url)
            way.run(f"INSERT INTO orders VALUES ({number})")
            try:
                current_job().complete(number, transaction=way.connection)
                (way.rollback if number == 1 else way.commit)()
            except AlreadyCompleted as error:
                told.append(str(error))
                way.rollback()
            way.close()
        return 0

    async with app.worker():
        assert await (await order.aenqueue()).aresult(timeout=20) == 2
    assert orders(url) == [2]
    assert len(told) == 1
    assert "nothing was written" in told[0]


@pytest.mark.row("B6", "B14")
@simply
async def test_a_run_that_lost_its_job_cannot_complete_it(
    app: Tidemill, url: str, kind: type[blocking.Way]
) -> None:
    runs: list[int] = []
    refused: list[str] = []

    @app.task(retry=AT_ONCE)
    async def order() -> str:
        job = current_job()
        runs.append(job.fence)
        if len(runs) == 1:  # somebody declares this run dead
            engine = await connect(url)
            await engine.jobs.release([Release(id=job.job_id, fence=job.fence)])
            await engine.close()
        way = kind(url)
        way.run(f"INSERT INTO orders VALUES ({len(runs)})")
        try:
            await job.acomplete("ours", transaction=way.connection)
        except StaleRun as error:
            refused.append(str(error))
            way.rollback()
            raise
        finally:
            with suppress(Exception):
                way.commit()
            way.close()
        return ""

    async with app.worker():
        job = await order.aenqueue()
        assert await outcome(job) == "ours"
    assert len(runs) == 2
    assert len(refused) == 1
    assert orders(url) == [2]


@on_postgres
async def test_a_transaction_that_is_left_open_holds_up_nobody(
    app: Tidemill, url: str, kind: type[blocking.Way], caplog: pytest.LogCaptureFixture
) -> None:
    left: list[blocking.Way] = []

    @app.task
    def order() -> str:
        way = kind(url)
        way.run("INSERT INTO orders VALUES (1)")
        current_job().complete("late", transaction=way.connection)
        left.append(way)
        return ""

    @app.task
    def other(n: int) -> int:
        current_job().log.info("here")
        return n

    async with app.worker(slots=2):
        job = await order.aenqueue()
        jobs = [await other.aenqueue(n) for n in range(20)]
        assert [await each.aresult(timeout=20) for each in jobs] == list(range(20))
        assert (await job.ainfo()).state is JobState.RUNNING
        left[0].commit()
        assert await outcome(job) == "late"
        left[0].close()
    assert orders(url) == [1]


@on_postgres
async def test_a_drain_leaves_without_a_transaction_that_is_left_open(
    app: Tidemill, url: str, kind: type[blocking.Way]
) -> None:
    left: list[blocking.Way] = []

    @app.task
    def order() -> str:
        way = kind(url)
        current_job().complete("late", transaction=way.connection)
        left.append(way)
        return ""

    async with app.worker(shutdown_timeout=1):
        job = await order.aenqueue()
        while not left:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert (await job.ainfo()).state is JobState.RUNNING
    left[0].commit()
    left[0].close()
    assert (await job.ainfo()).state is JobState.COMPLETED


@simply
async def test_code_that_goes_on_after_the_commit_is_not_stopped(
    app: Tidemill, url: str, kind: type[blocking.Way]
) -> None:
    """Its permit is free and another runs; its member holds something that the engine says it does not."""
    app.queue("one", concurrency=1)
    seen: list[object] = []
    second = asyncio.Event()

    @app.task(queue="one")
    async def order(number: int) -> None:
        way = kind(url)
        way.run(f"INSERT INTO orders VALUES ({number})")
        await current_job().acomplete(transaction=way.connection)
        way.commit()
        way.close()
        if number == 1:
            await second.wait()
            await heartbeats(app, 3)
            seen.append(current_job().aborted)
        else:
            second.set()

    async with app.worker(slots=2):
        jobs = [await order.aenqueue(number) for number in (1, 2)]
        for job in jobs:
            await outcome(job)
        while not seen:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert seen == [None]
    assert orders(url) == [1, 2]


@simply
async def test_refusals_leave_a_plain_completion(app: Tidemill, url: str, kind: type[blocking.Way]) -> None:
    told: list[str] = []

    @app.task
    async def order() -> str:
        job = current_job()
        for connection in (object(), url):
            try:
                await job.acomplete("no", transaction=connection)
            except NoTransaction as error:
                told.append(str(error))
        try:
            job.complete("no", transaction=object())
        except SyncInLoop as error:
            told.append(str(error))
        try:
            await job.acomplete(object(), transaction=object())
        except ValueError as error:
            told.append(str(error))
        return "plain"

    async with app.worker():
        assert await outcome(await order.aenqueue()) == "plain"
    assert len(told) == 4
    assert "acomplete" in told[2]


@pytest.mark.parametrize("engine_mode", ["sqlite-memory"])
async def test_an_engine_without_transactions_says_so(url: str) -> None:
    app = Tidemill(url)

    @app.task(retry=Retry(attempts=1))
    async def order() -> None:
        await current_job().acomplete(transaction=object())

    async with app.worker():
        with pytest.raises(JobFailed, match="needs PostgreSQL, or SQLite in a file"):
            await outcome(await order.aenqueue())
    await app.aclose()
