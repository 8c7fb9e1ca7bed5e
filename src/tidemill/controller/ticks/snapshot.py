"""What one run of the schedules' tick has read: all schedules at one moment."""

from typing import NamedTuple, Protocol

from tidemill.controller.ticks.tick import Term
from tidemill.engine.protocol import Engine
from tidemill.model.schedules.schedule import Schedule
from tidemill.model.time import Instant


class HandClock(Protocol):
    """A clock that a test moves by hand, instead of the engine's."""

    now: Instant


class ScheduleSnapshot(NamedTuple):
    """All schedules at one moment."""

    engine: Engine
    term: Term
    schedules: list[Schedule]
    now: Instant
    at: Instant | None
    """The `now` of further calls: None, unless time is moved by hand."""


async def take_snapshot(engine: Engine, term: Term, clock: HandClock | None) -> ScheduleSnapshot:
    """Read the schedules and the time."""
    at = None if clock is None else clock.now
    now = await engine.now() if at is None else at
    return ScheduleSnapshot(engine, term, await engine.schedules.list(), now, at)
