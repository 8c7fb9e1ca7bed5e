"""`enqueue` in a transaction of the caller's own, on every kind of connection that blocks."""

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from uuid import uuid4

import pytest

from tests.integration.app.claimer import Hand, taken, with_hand
from tests.integration.transactions.blocking import NAMES, POSTGRES, WAYS, Sqlite3, Way
from tests.servers.postgres_urls import PostgresUrls
from tidemill import Bound, IdTaken, Job, JobState, NoTransaction, Task, Tidemill, UnknownJob, WrongPlace

every_way = pytest.mark.parametrize(("engine_mode", "kind"), WAYS, ids=NAMES)


@pytest.fixture
def add(app: Tidemill) -> Task[[int, int], int]:
    @app.task(queue="sums", priority=3, key="a")
    def add(a: int, b: int) -> int:
        return a + b

    return add


@pytest.fixture
def way(app: Tidemill, url: str, kind: type[Way]) -> Iterator[Way]:
    app.enqueue_many([])
    with pytest.raises(UnknownJob):
        app.job(
            b"x".hex() * 16
        ).info()  # opens the engine: the place is ours before the user's table is there
    made = kind(url)
    made.begin()
    made.run("CREATE TABLE IF NOT EXISTS orders (number integer)")
    made.run("DELETE FROM orders")
    made.commit()
    made.begin()
    yield made
    made.close()


def exists(job: Job[object]) -> bool:
    try:
        job.info()
    except UnknownJob:
        return False
    return True


async def work(app: Tidemill, *jobs: Job[int]) -> list[int]:
    async with app.worker():
        return [await job.aresult(timeout=30) for job in jobs]


@pytest.mark.row("F7")
@every_way
def test_it_exists_and_runs_after_the_commit(app: Tidemill, add: Task[[int, int], int], way: Way) -> None:
    way.run("INSERT INTO orders VALUES (1)")
    job = add.using(transaction=way.connection).enqueue(20, 22)
    assert not exists(job)
    way.commit()
    record = job.info()
    assert (record.state, record.queue, record.priority, record.key) == (JobState.READY, "sums", 3, "20")
    assert asyncio.run(work(app, job)) == [42]
    way.begin()
    assert way.run("SELECT number FROM orders") == [(1,)]
    way.rollback()


@pytest.mark.row("F7")
@every_way
def test_it_never_existed_after_a_rollback(app: Tidemill, add: Task[[int, int], int], way: Way) -> None:
    way.run("INSERT INTO orders VALUES (1)")
    job = add.using(transaction=way.connection).enqueue(1, 2)
    way.rollback()
    assert not exists(job)
    assert asyncio.run(taken(app, "sums")) == []
    way.begin()
    assert way.run("SELECT number FROM orders") == []
    way.rollback()


@pytest.mark.row("F7")
@every_way
def test_a_savepoint_takes_its_jobs_with_it(app: Tidemill, add: Task[[int, int], int], way: Way) -> None:
    bound: Bound[[int, int], int] = add.using(transaction=way.connection)
    before = bound.enqueue(1, 1)
    way.run("SAVEPOINT here")
    inside = bound.enqueue(2, 2)
    way.run("ROLLBACK TO SAVEPOINT here")
    after = bound.enqueue(3, 3)
    way.commit()
    assert [exists(job) for job in (before, inside, after)] == [True, False, True]


@pytest.mark.row("A1", "F7")
@every_way
def test_several_keep_their_order(app: Tidemill, add: Task[[int, int], int], way: Way) -> None:
    bound = add.using(transaction=way.connection)
    first = [bound.enqueue(n, 0) for n in range(3)]
    many = app.enqueue_many((add.call(n, 1) for n in range(1_500)), transaction=way.connection)
    named = app.enqueue(add.name, [9], {"b": 9}, transaction=way.connection)
    way.commit()
    jobs = asyncio.run(taken(app, "sums")) + asyncio.run(taken(app, "sums"))
    assert [job.id for job in jobs] == [job.uuid.bytes for job in [*first, *many, named]]


async def known_queues(hand: Hand) -> list[str]:
    await hand.engine.jobs.promote()  # makes queues of those that transactions have left
    return [queue.name for queue in await hand.engine.queues.list()]


@every_way
def test_an_id_of_ones_own_makes_it_idempotent(app: Tidemill, add: Task[[int, int], int], way: Way) -> None:
    job = add.enqueue(1, 2)
    again = add.using(id=job.id, transaction=way.connection).enqueue(1, 2)
    with pytest.raises(IdTaken, match="with other arguments"):
        add.using(id=job.id, transaction=way.connection).enqueue(5, 6)
    with pytest.raises(IdTaken, match="with other arguments"):
        app.enqueue_many([add.using(id=job.id).call(5, 6)], transaction=way.connection)
    with pytest.raises(IdTaken, match="with other arguments"):
        add.using(id=job.id, queue="other", transaction=way.connection).enqueue(5, 6)
    way.commit()
    assert asyncio.run(with_hand(app, known_queues)) == ["sums"], "nothing of what was refused stays"
    assert again == job
    assert [item.body for item in asyncio.run(taken(app, "sums"))] == [b"[[1,2],{}]"]


@every_way
def test_one_id_for_two_calls_of_one_transaction_is_refused(
    app: Tidemill, add: Task[[int, int], int], way: Way
) -> None:
    """The first stays. Of a chunk that is refused nothing does, and the transaction is still good."""
    chosen = uuid4()
    bound = add.using(id=chosen)
    job = bound.using(transaction=way.connection).enqueue(1, 2)
    with pytest.raises(IdTaken, match="with other arguments"):
        bound.using(transaction=way.connection).enqueue(5, 6)
    with pytest.raises(IdTaken, match="add, not other"):
        app.enqueue("other", id=chosen, queue="sums", transaction=way.connection)
    with pytest.raises(IdTaken, match="it was left as it is"):
        app.enqueue_many([add.call(7, 7), bound.call(5, 6), add.call(8, 8)], transaction=way.connection)
    twins = add.using(id=uuid4())
    with pytest.raises(IdTaken, match="two calls have the id"):
        app.enqueue_many([add.call(7, 7), twins.call(1, 1), twins.call(2, 2)], transaction=way.connection)
    many = app.enqueue_many([add.call(3, 4), bound.call(1, 2), twins.call(9, 9)], transaction=way.connection)
    assert many[1] == job == bound.using(transaction=way.connection).enqueue(1, 2)
    way.commit()
    bodies = [b"[[1,2],{}]", b"[[3,4],{}]", b"[[9,9],{}]"]
    assert [item.body for item in asyncio.run(taken(app, "sums"))] == bodies


@every_way
def test_bad_arguments_are_refused_as_ever(app: Tidemill, add: Task[[int, int], int], way: Way) -> None:
    with pytest.raises(ValueError, match="add"):
        add.using(transaction=way.connection).enqueue("x")  # type: ignore[call-arg, arg-type]
    with pytest.raises(ValueError, match="after="):
        add.using(transaction=way.connection, after=[add.enqueue(1, 1)]).enqueue(1, 2)
    with pytest.raises(ValueError, match="give transaction= to enqueue_many"):
        add.using(transaction=way.connection).call(1, 2)
    job = add.using(transaction=way.connection).enqueue(1, 2)  # and the transaction is still good
    way.commit()
    assert exists(job)


@every_way
def test_another_database_is_refused(
    add: Task[[int, int], int],
    way: Way,
    kind: type[Way],
    engine_mode: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    if engine_mode == "sqlite-file":
        elsewhere = f"sqlite:///{tmp_path}/other.db"
        sqlite3.connect(tmp_path / "other.db").close()
    else:
        urls: PostgresUrls = request.getfixturevalue("postgres_urls")
        elsewhere = urls.fresh()
    way.rollback()
    way.close()
    other = kind(elsewhere)
    other.begin()
    with pytest.raises(WrongPlace, match="this connection"):
        add.using(transaction=other.connection).enqueue(1, 2)
    other.rollback()
    other.close()
    way.__init__(way.url)  # type: ignore[misc]
    way.begin()
    way.rollback()


@pytest.mark.parametrize(("engine_mode", "kind"), [("postgres-server", kind) for kind in POSTGRES])
def test_a_database_that_was_never_set_up_is_refused(
    add: Task[[int, int], int], way: Way, kind: type[Way], request: pytest.FixtureRequest
) -> None:
    urls: PostgresUrls = request.getfixturevalue("postgres_urls")
    way.rollback()
    way.close()
    other = kind(urls.server.url("postgres"))
    other.begin()
    with pytest.raises(WrongPlace, match="pass a connection to the database of the app's URL"):
        add.using(transaction=other.connection).enqueue(1, 2)
    other.rollback()
    other.close()
    way.__init__(way.url)  # type: ignore[misc]
    way.begin()
    way.rollback()


@pytest.mark.parametrize("engine_mode", ["postgres-server"])
def test_another_kind_of_database_is_refused(
    app: Tidemill, add: Task[[int, int], int], tmp_path: Path
) -> None:
    other = Sqlite3(f"sqlite:///{tmp_path}/other.db")
    with pytest.raises(
        WrongPlace, match="this connection is to SQLite, and the app's jobs are in PostgreSQL"
    ):
        add.using(transaction=other.connection).enqueue(1, 2)
    other.close()


@pytest.mark.parametrize("engine_mode", ["sqlite-memory"])
def test_an_engine_without_transactions_says_so(app: Tidemill, add: Task[[int, int], int]) -> None:
    with (
        closing(sqlite3.connect(":memory:")) as connection,
        pytest.raises(NoTransaction, match="transaction= needs PostgreSQL, or SQLite in a file"),
    ):
        add.using(transaction=connection).enqueue(1, 2)


@pytest.mark.parametrize("engine_mode", ["sqlite-file"])
def test_the_first_call_of_an_app_may_be_in_a_transaction(
    url: str, app: Tidemill, add: Task[[int, int], int]
) -> None:
    """Its engine is opened while the user's own transaction holds the file's lock."""
    with pytest.raises(UnknownJob):
        app.job(b"x".hex() * 16).info()
    app.close()
    way = Sqlite3(url)
    way.run("CREATE TABLE orders (number integer)")
    way.run("INSERT INTO orders VALUES (1)")
    assert way.connection.in_transaction
    job = add.using(transaction=way.connection).enqueue(1, 2)
    way.commit()
    assert exists(job)
    way.close()
