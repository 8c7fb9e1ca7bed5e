"""`aenqueue` in a transaction of the caller's own, on every kind of connection that is awaited."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from tests.integration.app.claimer import taken
from tests.integration.transactions.awaiting import NAMES, WAYS, Way
from tidemill import IdTaken, Job, JobState, Task, Tidemill, UnknownJob

every_way = pytest.mark.parametrize(("engine_mode", "kind"), WAYS, ids=NAMES)


@pytest.fixture
def add(app: Tidemill) -> Task[[int, int], int]:
    @app.task(queue="sums")
    def add(a: int, b: int) -> int:
        return a + b

    return add


@pytest.fixture
async def way(app: Tidemill, url: str, kind: type[Way]) -> AsyncIterator[Way]:
    with pytest.raises(UnknownJob):
        await app.job(b"x".hex() * 16).ainfo()
    made = kind(url)
    await made.open()
    await made.begin()
    await made.run("CREATE TABLE IF NOT EXISTS orders (number integer)")
    await made.run("DELETE FROM orders")
    await made.commit()
    await made.begin()
    yield made
    await made.close()
    await app.aclose()


async def exists(job: Job[object]) -> bool:
    try:
        await job.ainfo()
    except UnknownJob:
        return False
    return True


@pytest.mark.row("F7")
@every_way
async def test_it_exists_and_runs_after_the_commit(
    app: Tidemill, add: Task[[int, int], int], way: Way
) -> None:
    await way.run("INSERT INTO orders VALUES (1)")
    job = await add.using(transaction=way.connection).aenqueue(20, 22)
    assert not await exists(job)
    await way.commit()
    assert (await job.ainfo()).state is JobState.READY
    async with app.worker():
        assert await job.aresult(timeout=30) == 42
    await way.begin()
    assert await way.run("SELECT number FROM orders") == [(1,)]
    await way.rollback()


@pytest.mark.row("F7")
@every_way
async def test_it_never_existed_after_a_rollback(app: Tidemill, add: Task[[int, int], int], way: Way) -> None:
    await way.run("INSERT INTO orders VALUES (1)")
    job = await add.using(transaction=way.connection).aenqueue(1, 2)
    await way.rollback()
    assert not await exists(job)
    await way.begin()
    assert await way.run("SELECT number FROM orders") == []
    await way.rollback()


@pytest.mark.row("F7")
@every_way
async def test_a_savepoint_takes_its_jobs_with_it(
    app: Tidemill, add: Task[[int, int], int], way: Way
) -> None:
    bound = add.using(transaction=way.connection)
    before = await bound.aenqueue(1, 1)
    await way.run("SAVEPOINT here")
    inside = await bound.aenqueue(2, 2)
    await way.run("ROLLBACK TO SAVEPOINT here")
    after = await bound.aenqueue(3, 3)
    await way.commit()
    assert [await exists(job) for job in (before, inside, after)] == [True, False, True]


@pytest.mark.row("A1", "F7")
@every_way
async def test_several_keep_their_order(app: Tidemill, add: Task[[int, int], int], way: Way) -> None:
    bound = add.using(transaction=way.connection)
    first = [await bound.aenqueue(n, 0) for n in range(3)]
    many = await app.aenqueue_many((add.call(n, 1) for n in range(5)), transaction=way.connection)
    named = await app.aenqueue(add.name, [9], {"b": 9}, transaction=way.connection)
    await way.commit()
    jobs = await taken(app, "sums")
    assert [job.id for job in jobs] == [job.uuid.bytes for job in [*first, *many, named]]


@every_way
async def test_one_id_for_two_calls_of_one_transaction_is_refused(
    app: Tidemill, add: Task[[int, int], int], way: Way
) -> None:
    bound = add.using(id=uuid4())
    job = await bound.using(transaction=way.connection).aenqueue(1, 2)
    with pytest.raises(IdTaken, match="with other arguments"):
        await bound.using(transaction=way.connection).aenqueue(5, 6)
    with pytest.raises(IdTaken, match="it was left as it is"):
        await app.aenqueue_many([add.call(7, 7), bound.call(5, 6)], transaction=way.connection)
    again, _ = await app.aenqueue_many([bound.call(1, 2), add.call(3, 4)], transaction=way.connection)
    assert again == job
    await way.commit()
    assert [item.body for item in await taken(app, "sums")] == [b"[[1,2],{}]", b"[[3,4],{}]"]


@pytest.mark.row("F7")
@every_way
async def test_a_task_enqueues_in_a_transaction_of_its_own(
    app: Tidemill, add: Task[[int, int], int], way: Way
) -> None:
    """On the worker's loop, with the worker's engine."""

    @app.task
    async def parent() -> list[str]:
        child = await add.using(transaction=way.connection).aenqueue(1, 2)
        too_early = await exists(child)
        await way.commit()
        return [child.id, str(too_early)]

    async with app.worker():
        child, too_early = await (await parent.aenqueue()).aresult(timeout=30)
        assert too_early == "False"
        assert await app.job(child).aresult(timeout=30) == 3
