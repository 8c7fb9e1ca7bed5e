"""What one run of the schedules' tick has seen."""

from typing import NamedTuple, Protocol

from tidemill.controller.tick import Term
from tidemill.engine.protocol import Engine
from tidemill.model.schedule import Schedule
from tidemill.model.time import Instant


class HandClock(Protocol):
    """A clock that a test moves by hand, instead of the engine's."""

    now: Instant


class Look(NamedTuple):
    """All schedules at one moment."""

    engine: Engine
    term: Term
    schedules: list[Schedule]
    now: Instant
    at: Instant | None
    """The `now` of further calls: None, unless time is moved by hand."""


async def look(engine: Engine, term: Term, clock: HandClock | None) -> Look:
    """Read them."""
    at = None if clock is None else clock.now
    now = await engine.now() if at is None else at
    return Look(engine, term, await engine.schedules.list(), now, at)
