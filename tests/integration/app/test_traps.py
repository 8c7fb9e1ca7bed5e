"""What people run into: closing under load, first calls of many threads, iterables that fail."""

import asyncio
import pickle
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.app.claimer import Hand, taken, with_hand
from tidemill import Call, JobState, Tidemill, TidemillError
from tidemill.model.errors import BadInput, EngineClosed
from tidemill.model.jobs.run import Completed
from tidemill.task.settings import Settings


def number(n: int) -> int:
    return n


@pytest.mark.every_engine
def test_a_close_leaves_no_thread_waiting(app: Tidemill) -> None:
    task = app.task(name="t")(number)
    ends: list[str] = []

    def produce() -> None:
        try:
            for n in range(30):
                task.enqueue(n)
            ends.append("done")
        except EngineClosed:
            ends.append("closed")

    threads = [threading.Thread(target=produce) for _ in range(12)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        app.close()
    for thread in threads:
        thread.join(timeout=60)
    assert len(ends) == 12


def test_a_result_that_is_awaited_while_the_app_closes_is_an_error_of_ours(app: Tidemill) -> None:
    job = app.task(name="t")(number).enqueue(1)
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            job.result()
        except BaseException as error:
            errors.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not app._link._session._waiter or not app._link._session._waiter._waiting:  # type: ignore[union-attr]
        job.info()
    app.close()
    waiting.join(timeout=60)
    assert [type(error) for error in errors] == [EngineClosed]
    assert isinstance(errors[0], TidemillError)


def test_the_first_calls_of_many_threads_agree(app: Tidemill) -> None:
    switch = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for number_of_task in range(100):
            task = app.task(name=f"t{number_of_task}")(lambda n: n)
            calls: list[Call[Any]] = []
            threads = [
                threading.Thread(target=lambda task=task, calls=calls: calls.append(task.call(1)))
                for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert {call.job.task for call in calls} == {f"t{number_of_task}"}
    finally:
        sys.setswitchinterval(switch)


def test_what_was_handed_over_before_an_iterable_fails_is_stored(app: Tidemill) -> None:
    task = app.task(name="t")(number)

    def calls() -> Iterator[Call[int]]:
        for n in range(2_500):
            yield task.call(n)
        raise OSError("the file ended")

    with pytest.raises(OSError, match="the file ended") as caught:
        app.enqueue_many(calls())
    assert caught.value.__notes__ == ["enqueue_many: the first 2,000 calls were stored"]
    assert len(asyncio.run(taken(app))) == 1_000
    assert len(asyncio.run(taken(app))) == 1_000
    assert asyncio.run(taken(app)) == []


def test_a_result_without_waiting(app: Tidemill) -> None:
    job = app.task(name="t")(number).enqueue(1)
    with pytest.raises(TimeoutError):
        job.result(timeout=0)

    async def settle(hand: Hand) -> None:
        (taken,) = await hand.take()
        await hand.settle(taken, Completed(result=b"1"))

    asyncio.run(with_hand(app, settle))
    assert job.result(timeout=0) == 1


async def test_odd_arguments_are_refused(app: Tidemill) -> None:
    task = app.task(name="t")(number)
    wrong: list[Any] = [
        lambda: app.worker(queues="mail"),
        lambda: Tidemill("sqlite://", settings=Settings.load()),
        lambda: task.using(after=["nonsense"]),
        lambda: task.using(after=5),  # type: ignore[arg-type]
    ]
    for call in wrong:
        with pytest.raises(BadInput):
            call()
    for args, kwargs in (("abc", None), ([1], [2]), (5, None)):
        with pytest.raises(BadInput):
            await app.aenqueue("t", args, kwargs)  # type: ignore[arg-type]
    await app.aclose()


def test_the_later_word_counts(app: Tidemill) -> None:
    task = app.task(name="t")(number)
    assert task.using(delay=60).using(delay=0).enqueue(1).info().state is JobState.READY


def test_a_task_is_pickled_by_its_name() -> None:
    module = sys.modules[__name__]
    task = Tidemill("sqlite://").task(number)
    original, module.number = module.number, task  # type: ignore[attr-defined]
    try:
        assert pickle.loads(pickle.dumps(task)) is task
    finally:
        module.number = original  # type: ignore[attr-defined]


async def test_an_annotation_that_cannot_be_resolved_stops_a_worker_before_it_begins(app: Tidemill) -> None:
    app.task(name="fine")(number)
    app.task(name="broken")(broken)
    with pytest.raises(BadInput, match="Nope"):
        app.worker()


def broken(x: "Nope") -> None: ...  # type: ignore[name-defined]  # noqa: F821
