"""An election on an engine of this process, and ticks that note what they do."""

import asyncio
from collections.abc import Callable
from typing import Any

from tidemill.controller.controller import Controller
from tidemill.controller.election import Election
from tidemill.controller.ticks.tick import Term
from tidemill.engine.protocol import Engine
from tidemill.model.view import Lease

LEASE_S, HEARTBEAT_S = 1.0, 0.2


class Note:
    """A tick that notes the fences under which it ran."""

    name = "note"
    every = 0.01

    def __init__(self, then: Callable[[], Any] = lambda: None) -> None:
        self.fences: list[int] = []
        self.ran = asyncio.Event()
        self._then = then

    async def run(self, engine: Engine, term: Term) -> float | None:
        assert term.trusted()
        self.fences.append(term.fence)
        self.ran.set()
        answer = self._then()
        return await answer if asyncio.iscoroutine(answer) else answer  # type: ignore[no-any-return]

    async def runs(self) -> None:
        """The next time it does."""
        self.ran.clear()
        await self.ran.wait()


def an_election(engine: Engine, member: int = 1, *, lease_s: float = LEASE_S) -> Election:
    return Election(engine, member=bytes([member]) * 16, lease_s=lease_s, heartbeat_s=HEARTBEAT_S)


def a_controller(engine: Engine, *ticks: Any, member: int = 1) -> Controller:
    return Controller(engine, ticks, an_election(engine, member))


class Locks:
    """The locks of an engine; errors that were planted are raised instead, one at a call."""

    def __init__(self, engine: Engine) -> None:
        self._locks = engine.leases
        self.errors: list[Exception] = []
        self.calls: list[str] = []
        self._called = asyncio.Event()

    async def called(self, name: str, times: int) -> None:
        """Once it has been, so many times in all."""
        while self.calls.count(name) < times:
            self._called.clear()
            await self._called.wait()

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **options: Any) -> Any:
            self.calls.append(name)
            self._called.set()
            if self.errors:
                raise self.errors.pop(0)
            return await getattr(self._locks, name)(*args, **options)

        return call


class Faulty:
    """An engine with such locks."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.leases = Locks(engine)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


async def held(engine: Engine) -> list[Lease]:
    return await engine.leases.list()
