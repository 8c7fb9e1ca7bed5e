"""The same id once more: the same call is the same job, another one is refused."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.integration.app.claimer import record_of, with_hand
from tidemill import IdTaken, Tidemill, UnknownJob
from tidemill.app.task import Call
from tidemill.model.errors import EngineUnavailable
from tidemill.testing.contract.fixtures import configure, created

in_memory = pytest.mark.parametrize("engine_mode", ["sqlite-memory"], indirect=True)
"""For what the app does, whatever the engine."""


@pytest.fixture
def chosen() -> Any:
    return uuid4()


def test_the_same_call_is_the_same_job_however_it_is_written(app: Tidemill, chosen: Any) -> None:
    @app.task(name="t")
    def task(a: set[str], b: dict[str, int], c: int = 0) -> None: ...

    words = {"one", "two", "three", "four"}
    job = task.using(id=chosen).enqueue(words, {"x": 1, "y": 2}, c=3)
    body = record_of(job).body
    assert task.using(id=chosen).enqueue(set(words), {"y": 2, "x": 1}, 3) == job
    assert task.using(id=chosen, priority=1).enqueue(a=words, b={"x": 1, "y": 2}, c=3) == job
    assert app.enqueue("t", [["two", "one", "four", "three"], {"x": 1, "y": 2}], {"c": 3}, id=chosen) == job
    same = task.using(id=chosen).call(words, {"x": 1, "y": 2}, 3)
    assert app.enqueue_many([same, task.call(words, {})])[0] == job
    assert record_of(job).body == body


def test_another_call_is_refused_and_the_job_stays(app: Tidemill, chosen: Any) -> None:
    task = app.task(name="t")(lambda n: None)
    other = app.task(name="u")(lambda n: None)
    job = task.using(id=chosen).enqueue(1)
    with pytest.raises(IdTaken, match=rf"{chosen} is there already, with other arguments for t: it was left"):
        task.using(id=chosen).enqueue(2)
    with pytest.raises(IdTaken, match="of the task t, not u"):
        other.using(id=chosen).enqueue(1)
    with pytest.raises(IdTaken, match="of the task t, not nobody"):
        app.enqueue("nobody", [1], id=chosen, queue="q")
    assert job.info().args == (1,)


def is_stored(app: Tidemill, call: Call[Any]) -> bool:
    try:
        app.job(UUID(bytes=call.job.id)).info()
    except UnknownJob:
        return False
    return True


def test_of_a_refused_chunk_nothing_is_stored(app: Tidemill, chosen: Any) -> None:
    task, other = app.task(name="t")(lambda n: None), app.task(name="u")(lambda n: None)
    job = task.using(id=chosen).enqueue(1)
    taken = [task.call(7), task.using(id=chosen).call(2), task.call(8)]
    with pytest.raises(IdTaken, match="with other arguments for t: it was left"):
        app.enqueue_many(taken)
    twins = uuid4()
    one_id = [task.using(id=twins).call(1), task.call(7), task.using(id=twins).call(2)]
    with pytest.raises(IdTaken, match=f"two calls have the id {twins}.* with other arguments for t: neither"):
        app.enqueue_many(one_id)
    with pytest.raises(IdTaken, match="of the task t, not u"):
        app.enqueue_many([one_id[0], other.using(id=twins).call(1)])
    assert [is_stored(app, call) for call in (taken[0], taken[2], *one_id)] == [False] * 5
    assert job.info().args == (1,)
    first, second = app.enqueue_many([task.using(id=twins).call(1), task.using(id=twins).call(n=1)])
    assert first == second
    assert first.info().args == (1,)


@in_memory
def test_the_chunks_before_a_refused_one_stay(app: Tidemill, chosen: Any) -> None:
    """Also where it is one of them that has the id."""
    task = app.task(name="t")(lambda n: None)
    calls = [task.call(number) for number in range(1_002)]
    calls[3], calls[1_000] = task.using(id=chosen).call(1), task.using(id=chosen).call(2)
    with pytest.raises(IdTaken, match="with other arguments") as refused:
        app.enqueue_many(calls)
    assert refused.value.__notes__ == ["enqueue_many: the first 1,000 calls were stored"]
    assert [is_stored(app, call) for call in (calls[0], calls[999], calls[1_001])] == [True, True, False]
    assert app.job(chosen).info().args == (1,)


@in_memory
def test_another_call_that_comes_in_the_same_moment(
    app: Tidemill, chosen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has the id, and the rest of the chunk is stored."""
    task = app.task(name="t")(lambda n: None)
    enqueue = app._link.enqueue

    def too_late(jobs: Any) -> Any:
        task.using(id=chosen).enqueue(1)
        return enqueue(jobs)

    monkeypatch.setattr(app._link, "enqueue", too_late)
    calls = [task.using(id=chosen).call(2), task.call(3)]
    with pytest.raises(IdTaken, match="with other arguments"):
        app.enqueue_many(calls)
    assert app.job(chosen).info().args == (1,)
    assert is_stored(app, calls[1])


@in_memory
def test_many_calls_are_read_once_and_without_ids_not_at_all(
    app: Tidemill, chosen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = app.task(name="t")(lambda n: None)
    wait, trips = app._link.wait, []

    def count(name: str, work: Any) -> Any:
        trips.append(name)
        return wait(name, work)

    monkeypatch.setattr(app._link, "wait", count)
    app.enqueue_many(task.call(number) for number in range(3))
    assert trips == []
    for _ in range(2):  # new, then known
        app.enqueue_many([task.using(id=chosen).call(1), task.using(id=uuid4()).call(1), task.call(1)])
        assert trips == ["enqueue_many"]
        trips.clear()


@in_memory
def test_an_outage_before_a_chunk_is_left_to_the_step(
    app: Tidemill, chosen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step is patient. What it passes over is compared when the engine is back."""
    task = app.task(name="t")(lambda n: None)
    job = task.using(id=chosen).enqueue(1)
    wait, outages = app._link.wait, [1, 1]

    def go_down(name: str, work: Any) -> Any:
        if name == "enqueue_many" and outages.pop():
            raise EngineUnavailable("down")
        return wait(name, work)

    monkeypatch.setattr(app._link, "wait", go_down)
    (new,) = app.enqueue_many([task.using(id=uuid4()).call(3)])
    outages.insert(0, 0)
    with pytest.raises(IdTaken, match="with other arguments"):
        app.enqueue_many([task.using(id=chosen).call(2)])
    assert (job.info().args, new.info().args) == ((1,), (3,))


async def test_in_async_code_too(app: Tidemill, chosen: Any) -> None:
    task = app.task(name="t")(lambda n: None)
    job = await task.using(id=chosen).aenqueue(1)
    assert await task.using(id=chosen).aenqueue(1) == job
    with pytest.raises(IdTaken):
        await task.using(id=chosen).aenqueue(2)
    with pytest.raises(IdTaken):
        await app.aenqueue_many([task.using(id=chosen).call(2), other := task.call(3)])
    bound = task.using(id=uuid4())
    with pytest.raises(IdTaken, match="two calls"):
        await app.aenqueue_many([other, bound.call(1), bound.call(2)])
    with pytest.raises(UnknownJob):
        await app.job(UUID(bytes=other.job.id)).ainfo()
    again, new = await app.aenqueue_many([task.using(id=chosen).call(1), other])
    assert again == job
    assert (await new.ainfo()).args == (3,)
    await app.aclose()


@pytest.mark.every_engine
async def test_of_many_at_once_one_is_stored_and_the_others_are_told(app: Tidemill, chosen: Any) -> None:
    task = app.task(name="t")(lambda n: None)
    calls = [task.using(id=chosen).aenqueue(number % 2) for number in range(10)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    stored = (await app.job(chosen).ainfo()).args
    assert stored is not None
    for number, answer in enumerate(answers):
        assert isinstance(answer, IdTaken) == (number % 2 != stored[0]), (number, answer)
    await app.aclose()


def test_a_finished_job_has_its_id_still(app: Tidemill, chosen: Any) -> None:
    """Also as a tombstone, of which only the task is known."""
    app.queue("gone", keep=0)
    kept, gone = app.task(name="kept")(lambda n: None), app.task(name="gone", queue="gone")(lambda n: None)
    kept.using(id=chosen).enqueue(1)
    other = uuid4()
    gone.using(id=other).enqueue(1)

    async def finish(hand: Any) -> None:
        await configure(hand.engine, "gone", app.registry.queues["gone"])
        for run in await hand.take("default", "gone"):
            await hand.settle(run)

    asyncio.run(with_hand(app, finish))
    assert kept.using(id=chosen).enqueue(1).info().state == "completed"
    with pytest.raises(IdTaken):
        kept.using(id=chosen).enqueue(2)
    gone.using(id=other).enqueue(1)
    gone.using(id=other).enqueue(2)  # nobody knows its arguments any more
    with pytest.raises(IdTaken, match="of the task gone, not kept"):
        kept.using(id=other).enqueue(1)


@pytest.mark.every_engine
def test_a_lost_reply_is_no_other_call(app: Tidemill, chosen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    task = app.task(name="t")(lambda n: None)
    enqueue, calls = app._link.enqueue_here, []

    def lose_the_reply(jobs: Any) -> Any:
        calls.append(enqueue(jobs))
        if len(calls) == 1:
            raise EngineUnavailable("the reply was lost")
        return calls[-1]

    monkeypatch.setattr(app._link, "enqueue_here", lose_the_reply)
    bound = task.using(id=chosen)
    with pytest.raises(EngineUnavailable):
        bound.enqueue(1)
    assert bound.enqueue(1).info().args == (1,)
    assert [created(answer) for answer in calls] == [[True], [False]]
