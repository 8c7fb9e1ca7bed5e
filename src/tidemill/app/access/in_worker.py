"""An app in the hands of a worker: what Tidemill's own processes do with it and users do not.

Workers know an app by protocols (`WorkerApp`, `RunnerApp`); this class has
their methods, so that `Tidemill` need not.
"""

import asyncio
from collections.abc import Callable

from tidemill.app.access.session import EngineSession
from tidemill.app.tidemill import Tidemill
from tidemill.engine.protocol import Engine, TransactionsFacet
from tidemill.task.registry import Registry


class AppInWorker:
    """One app, from inside a worker."""

    def __init__(self, app: Tidemill) -> None:
        self._link = app._link
        self._registry = app.registry

    @property
    def registry(self) -> Registry:
        """What the app's code declares."""
        return self._registry

    def work_on(self, url: str, namespace: str) -> None:
        """Forget what the settings say: in a worker process, state lives at the worker's own URL."""
        self._link.move(url, namespace)

    def adopt(self, engine: Engine) -> Callable[[], None]:
        """Use a worker's engine for calls on the loop that opened it. Returns the undoing."""
        session = EngineSession(asyncio.get_running_loop(), engine)
        self._link.loops.adopt(session)
        return lambda: self._link.loops.disown(session)

    def transactions(self) -> TransactionsFacet:
        """The facet whose scripts run on a connection of the caller's."""
        return self._link.transactions("transactions")

    async def atransactions(self) -> TransactionsFacet:
        """`transactions` for async code."""
        return await self._link.atransactions()
