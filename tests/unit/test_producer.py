"""What a caller is told when an enqueue had to be repeated."""

import asyncio
from collections.abc import Sequence
from typing import cast

import pytest

from tidemill.app.enqueueing import producer
from tidemill.app.enqueueing.producer import Producer
from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineFull, EngineUnavailable
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import NewJob, Stored
from tidemill.testing.contract.fixtures import created


class Scripted:
    """An engine whose enqueues end as told, one after the other."""

    def __init__(self, *ends: Exception | None) -> None:
        self._ends = list(ends)
        self.jobs = self

    async def enqueue(self, jobs: Sequence[NewJob]) -> list[Stored]:
        end = self._ends.pop(0)
        if end is not None:
            raise end
        return [Stored(job.id, True) for job in jobs]


async def enqueue(monkeypatch: pytest.MonkeyPatch, *ends: Exception | None) -> list[bool]:
    monkeypatch.setattr(producer, "REPEAT_AFTER_S", (0.0, 0.0))
    engine = Scripted(*ends)

    async def opened() -> Engine:
        return cast(Engine, engine)

    one = Producer(opened, asyncio.get_running_loop())
    return created(await one.hand_over([NewJob(id=new_id(), task="t", queue="default")]))


async def test_an_answer_that_was_lost_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await enqueue(monkeypatch, EngineUnavailable("lost"), None) == [True]


async def test_a_full_engine_has_stored_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineFull):
        await enqueue(monkeypatch, EngineFull("full"))


async def test_a_full_engine_after_a_lost_answer_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The try whose answer was lost may have stored the job: `EngineFull` would deny that."""
    with pytest.raises(EngineUnavailable, match="may be stored or not: full") as told:
        await enqueue(monkeypatch, EngineUnavailable("lost"), EngineFull("full"))
    assert not isinstance(told.value, EngineFull)


async def test_an_engine_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EngineUnavailable, match="third"):
        await enqueue(monkeypatch, *map(EngineUnavailable, ("first", "second", "third")))
