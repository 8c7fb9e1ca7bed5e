"""An engine whose calls about jobs can be made to fail, before or after they were applied."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Literal, cast

from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineUnavailable

When = Literal["before", "after"]
"""The call never arrived, or its answer was lost."""


class ShakyEngine:
    """The same engine; its `jobs` facet fails as planned."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.jobs = ShakyJobs(engine)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


class ShakyJobs:
    """Every call is written down, and fails if the plan says so."""

    def __init__(self, engine: Engine) -> None:
        self._jobs = engine.jobs
        self._plans: dict[str, deque[When | None]] = {}
        self._down: asyncio.Event | None = None
        self.in_flight = 0
        self.most_in_flight = 0
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.answers: list[Any] = []

    def fail(self, method: str, *times: When | None) -> None:
        """Let the next calls of a method fail, or not (None)."""
        self._plans.setdefault(method, deque()).extend(times)

    def of(self, method: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        """The arguments of every call of a method."""
        return [(args, kwargs) for name, args, kwargs in self.calls if name == method]

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._jobs, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.calls.append((name, args, kwargs))
            plan = self._plans.get(name)
            when = plan.popleft() if plan else None
            if when == "before":
                await asyncio.sleep(0)
                raise EngineUnavailable("the line is dead")
            self.in_flight += name in ("claim", "settle")
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            try:
                answer = await method(*args, **kwargs)
            finally:
                self.in_flight -= name in ("claim", "settle")
            if when == "after":
                raise EngineUnavailable("the answer was lost")
            return answer

        return call


def shaky(engine: Engine) -> tuple[Engine, ShakyJobs]:
    """Such an engine, and its facet."""
    made = ShakyEngine(engine)
    return cast(Engine, made), made.jobs
