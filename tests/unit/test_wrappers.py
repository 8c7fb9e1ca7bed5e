"""The wrappers that every call passes offer the whole protocol, with its signatures."""

import inspect
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tidemill.engine import protocol
from tidemill.engine.events.emitting import EmittingEngine
from tidemill.engine.instrumentation import instrument
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.jobs.move import Moves
from tidemill.testing.contract.fixtures import a_job

FACETS = {
    "jobs": protocol.JobsFacet,
    "blocking": protocol.BlockingFacet,
    "inspect": protocol.InspectFacet,
    "queues": protocol.QueuesFacet,
    "tasks": protocol.TasksFacet,
    "schedules": protocol.SchedulesFacet,
    "leases": protocol.LeasesFacet,
    "members": protocol.MembersFacet,
    "signals": protocol.SignalsFacet,
    "transactions": protocol.TransactionsFacet,
}
WRAPPERS: dict[str, Callable[[Engine], Engine]] = {
    "emitting": EmittingEngine,
    "instrumentation": lambda engine: instrument(engine, lambda _: None),
}


def public(protocol: type) -> list[str]:
    return [name for name in vars(protocol) if not name.startswith("_")]


@pytest.fixture(params=WRAPPERS)
async def wrapped(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Engine]:
    """A file: an engine in memory has no transactions."""
    engine = WRAPPERS[request.param](await connect(f"sqlite:///{tmp_path / 'jobs.db'}"))
    yield engine
    await engine.close()


def test_the_facets_are_all_there_are() -> None:
    assert set(public(Engine)) == {*FACETS, "name", "single_process", "keeps", "now", "close"}


async def test_each_wrapper_offers_every_method_of_the_protocol(wrapped: Engine) -> None:
    for name in public(Engine):
        assert hasattr(wrapped, name), name
    for facet, declared in FACETS.items():
        for name in public(declared):
            expected, found = getattr(declared, name), getattr(getattr(wrapped, facet), name)
            if callable(expected):
                wanted = [
                    one for one in inspect.signature(expected).parameters.values() if one.name != "self"
                ]
                assert list(inspect.signature(found).parameters.values()) == wanted, f"{facet}.{name}"
                assert inspect.iscoroutinefunction(found) == inspect.iscoroutinefunction(expected)


async def test_the_callers_own_moves_are_filled(wrapped: Engine) -> None:
    """Also while the wrapper itself wants to know what moved. What they held before stays."""
    first, second = a_job(), a_job()
    moves = Moves()
    await wrapped.jobs.enqueue([first, second])
    for job in (first, second):
        await wrapped.jobs.cancel([job.id], moves=moves)
    assert [move.id for move in moves.named] == [first.id, second.id]
