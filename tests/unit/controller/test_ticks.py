"""One run of a tick at a time, against an engine that does as it is told."""

import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tidemill.controller.term import ElectedTerm
from tidemill.controller.ticks import promotion, retention, upkeep
from tidemill.controller.ticks.all import all_ticks
from tidemill.controller.ticks.promotion import Promotion
from tidemill.controller.ticks.retention import Retention
from tidemill.controller.ticks.upkeep import REMIND_S, Upkeep
from tidemill.engine.boot import boot_ns
from tidemill.engine.protocol import Engine, Promoted, Pruned
from tidemill.model.storage import HolderKind, Storage, StorageHolder
from tidemill.model.time import HOUR, SECOND, Span


def answering(facet: str, method: str, *answers: Any) -> Engine:
    """An engine with one method, which gives these answers."""
    left = list(answers)

    async def answer() -> Any:
        return left.pop(0)

    return cast(Engine, SimpleNamespace(**{facet: SimpleNamespace(**{method: answer})}))


@pytest.fixture
def term() -> ElectedTerm:
    return ElectedTerm(1, sent_ns=boot_ns(), lease_s=60)


def test_ticks_have_names_of_their_own_and_are_not_shared() -> None:
    some, others = all_ticks(), all_ticks()
    assert len({tick.name for tick in some}) == len(some)
    assert all(tick.every > 0 for tick in some)
    assert not set(map(id, some)) & set(map(id, others))


@pytest.mark.row("C6")
async def test_retention_goes_on_while_there_is_more_and_comes_back_sooner_when_it_found_something(
    term: ElectedTerm, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    answers = Pruned(jobs=1_000, more=True), Pruned(jobs=3, more=False), Pruned(jobs=0, more=False)
    engine, tick = answering("jobs", "prune", *answers), Retention()
    going_on, soon, late = [cast(float, await tick.run(engine, term)) for _ in answers]
    assert going_on >= retention.LEAST_S
    assert 0.8 * retention.SOON_S <= soon <= 1.2 * retention.SOON_S
    assert 0.8 * retention.EVERY_S <= late <= 1.2 * retention.EVERY_S
    assert caplog.messages == ["retention deleted 1003 finished jobs"]


@pytest.mark.row("C6")
@pytest.mark.parametrize("took_s", [0.0, 0.03, 2.0])
async def test_retention_takes_a_fifth_of_the_time_at_most(
    term: ElectedTerm, monkeypatch: pytest.MonkeyPatch, took_s: float
) -> None:
    """However slow the engine is."""
    clock = iter((100.0, 100.0 + took_s))
    monkeypatch.setattr(retention, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    engine = answering("jobs", "prune", Pruned(jobs=1_000, more=True))
    pause_s = cast(float, await Retention().run(engine, term))
    assert pause_s == pytest.approx(max(retention.LEAST_S, 4 * took_s))


async def test_promotion_goes_on_soon_while_there_is_more(term: ElectedTerm) -> None:
    answers = (Promoted(jobs=1_000, wait=0), Promoted(jobs=3, wait=SECOND), Promoted(jobs=0, wait=None))
    engine, tick = answering("jobs", "promote", *answers), Promotion()
    assert [await tick.run(engine, term) for _ in answers] == [promotion.BUSY_S, None, None]


async def test_what_makes_the_state_grow_is_told_once_in_a_while(
    term: ElectedTerm, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(pid: str, age: Span = HOUR) -> Storage:
        return Storage(
            bytes=0, parts=[], holders=[StorageHolder(kind=HolderKind.TRANSACTION, name=pid, age=age)]
        )

    now = 1_000.0
    monkeypatch.setattr(upkeep, "time", SimpleNamespace(monotonic=lambda: now))
    states = [held("1"), held("1"), held("2", age=0), held("2"), held("1"), held("1")]
    engine, tick, logged = answering("inspect", "storage", *states), Upkeep(), []
    for wait in (60, 60, 60, 60, REMIND_S, 60):
        assert await tick.run(engine, term) is None
        logged.append([message[:28] for message in caplog.messages])
        caplog.clear()
        now += wait
    first, second = "the transaction of process 1", "the transaction of process 2"
    assert logged == [[first], [], [], [second], [], [first]]
