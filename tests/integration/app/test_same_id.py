"""The same id once more: the same call is the same job, another one is refused."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.integration.app.claimer import record_of, with_hand
from tidemill import IdTaken, Tidemill
from tidemill.model.errors import EngineUnavailable


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
    calls = [task.call(7), task.using(id=chosen).call(2), task.call(8)]
    with pytest.raises(IdTaken, match="with other arguments"):
        app.enqueue_many(calls)
    assert job.info().args == (1,)
    assert [app.job(UUID(bytes=call.job.id)).info().args for call in (calls[0], calls[2])] == [(7,), (8,)]


async def test_in_async_code_too(app: Tidemill, chosen: Any) -> None:
    task = app.task(name="t")(lambda n: None)
    job = await task.using(id=chosen).aenqueue(1)
    assert await task.using(id=chosen).aenqueue(1) == job
    with pytest.raises(IdTaken):
        await task.using(id=chosen).aenqueue(2)
    with pytest.raises(IdTaken):
        await app.aenqueue_many([task.using(id=chosen).call(2)])
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
        await hand.engine.queues.configure("gone", app.registry.queues["gone"])
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
    assert calls == [[True], [False]]
