"""A process whose calls wait until a test lets them go on."""

import asyncio
from typing import Any

from tests.integration.events.conftest import Open, Process
from tidemill.engine.protocol import Engine


class Held:
    """A facet whose calls wait at their beginning, or (`answered`) for their answer: each for its turn, if it
    was named before."""

    def __init__(self, facet: Any, turns: dict[str, asyncio.Event]) -> None:
        self._facet = facet
        self._turns = turns

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._facet, name)

        async def call(*args: Any, **options: Any) -> Any:
            if name in self._turns:
                await self._turns[name].wait()
            answer = await method(*args, **options)
            if f"{name} answered" in self._turns:
                await self._turns[f"{name} answered"].wait()
            return answer

        return call


class HeldEngine:
    """An engine with such facets."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.turns: dict[str, asyncio.Event] = {}
        self.jobs, self.members = Held(engine.jobs, self.turns), Held(engine.members, self.turns)
        self.inspect = Held(engine.inspect, self.turns)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


async def a_held(open_process: Open) -> tuple[Process, dict[str, asyncio.Event]]:
    made: list[HeldEngine] = []

    def around(engine: Engine) -> Any:
        made.append(HeldEngine(engine))
        return made[-1]

    return await open_process(around), made[0].turns
