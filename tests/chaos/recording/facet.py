"""What the recorded facets have in common."""

import os
import signal
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from tests.chaos.history import Phase, Recorder
from tests.chaos.weather import NeverArrived, Weather
from tidemill.model.errors import EngineFull, EngineUnavailable, TidemillError

T = TypeVar("T")

DEATH = "death at a named point"


def phase_of(error: BaseException) -> Phase:
    """What an error says about the call."""
    if isinstance(error, EngineUnavailable) and not isinstance(error, EngineFull | NeverArrived):
        return "unknown"
    return "failed" if isinstance(error, TidemillError) else "unknown"


class Facet:
    """Passes on what it does not know."""

    def __init__(self, facet: Any, recorder: Recorder, weather: Weather) -> None:
        self._facet = facet
        self._recorder = recorder
        self._weather = weather

    def __getattr__(self, name: str) -> Any:
        return getattr(self._facet, name)

    async def _ask(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        """One trip, in the weather of now."""
        self._weather.outward()
        self._pass(f"before {name}")
        answer = await call()
        self._pass(f"after {name}")
        self._weather.homeward()
        return answer

    def _pass(self, point: str) -> None:
        if self._weather.is_deadly(point):
            self._recorder.write("fault", text=DEATH, pids=[os.getpid()], member=point)
            os.kill(os.getpid(), signal.SIGKILL)
