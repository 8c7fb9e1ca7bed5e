"""An engine that writes down what it is asked and what it answers, and loses some of it when told to.

Members and worker processes of a run open their engine through `connect_recorded`; nothing else about them is
changed. What is lost on purpose is lost as a network loses it: the call never arrives, or its reply does not.
Engines with a server lose it there too, in the proxy; a file has no other place to lose it.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.chaos.history import Recorder
from tests.chaos.recording.cluster import (
    RecordedLeases,
    RecordedMembers,
    RecordedQueues,
    RecordedSchedules,
)
from tests.chaos.recording.facet import phase_of
from tests.chaos.recording.jobs import RecordedJobs
from tests.chaos.recording.signals import ShakySignals
from tests.chaos.weather import Weather
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect

__all__ = ["RecordedEngine", "connect_recorded", "phase_of"]


class RecordedEngine:
    """The same engine; what the checkers need is written down."""

    def __init__(self, engine: Engine, recorder: Recorder, weather: Weather) -> None:
        self._engine = engine
        self.jobs = RecordedJobs(engine, recorder, weather)
        self.members = RecordedMembers(engine, recorder, weather)
        self.signals = ShakySignals(engine, weather)
        self.leases = RecordedLeases(engine, recorder, weather)
        self.queues = RecordedQueues(engine, recorder, weather)
        self.schedules = RecordedSchedules(engine, recorder, weather, self.leases)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


def connect_recorded(recorder: Recorder, weather: Weather) -> Callable[..., Awaitable[Any]]:
    """In the place of `tidemill.engine.registry.connect`."""

    async def opening(*args: Any, **options: Any) -> RecordedEngine:
        return RecordedEngine(await connect(*args, **options), recorder, weather)

    return opening
