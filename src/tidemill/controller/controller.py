"""The controller of one member: it stands for election, and while elected it runs the ticks.

Each tick has a loop of its own, so that a slow tick holds up no other. Each run is bounded in time. (Engines
make some calls one after the other, so retention and promotion may wait for each other's calls, which are
bounded steps. Firings of schedules, heartbeats and the lease do not wait for them.)

A run begins only while the term is trusted. When the term is lost, runs under way are cancelled. A cancelled
call may have been applied: that is why every tick may safely be done twice.

A tick that fails is logged and runs again after its usual pause. A fault in the election itself is logged and
ends the term; a heartbeat later the member stands again. Neither ever ends the member: the next controller
would meet the same fault, and the cluster would lose one worker after the other.
"""

import asyncio
import logging
from collections.abc import Sequence

from tidemill.controller.election import Election
from tidemill.controller.term import ElectedTerm
from tidemill.controller.ticks.tick import Tick
from tidemill.engine.ending import end
from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineClosed, EngineError

RUN_S = 30.0
"""The longest that one run of a tick may take."""
GAP_S = 0.01
"""The least time between two runs of a tick, whatever it asks for: others use the engine too."""


log = logging.getLogger("tidemill.controller")


class Controller:
    """One candidate. All of it runs on the loop of `engine`."""

    def __init__(self, engine: Engine, ticks: Sequence[Tick], election: Election) -> None:
        self._engine = engine
        self._ticks = ticks
        self._election = election
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Stand no more; if elected, hand over at once. `run` then returns."""
        self._stopped.set()

    def vacant(self) -> None:
        """A signal says that the controller gave up the lease."""
        self._election.vacant()

    async def run(self) -> None:
        """Until stopped or cancelled."""
        standing = asyncio.create_task(self._stand(), name="stand for controller")
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait({standing, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            standing.cancel()
            await _outlast(standing)
        if not standing.cancelled():
            standing.result()

    async def _stand(self) -> None:
        while True:
            try:
                await self._serve(await self._election.won())
            except EngineClosed:
                raise
            except Exception:
                log.exception("standing for controller has failed; it begins anew in a heartbeat")
                await self._election.rest()

    async def _serve(self, term: ElectedTerm) -> None:
        """One term, to its end."""
        ticking = [
            asyncio.create_task(self._repeat(tick, term), name=f"tick {tick.name}") for tick in self._ticks
        ]
        holding = asyncio.create_task(self._election.hold(term), name="hold the term")
        try:
            await asyncio.wait({holding, *ticking}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            term.end()
            await end(*ticking, holding)
            await self._election.give_up(term)
            raise
        term.end()
        await end(*ticking, holding)
        for task in (holding, *ticking):  # the engine was closed under them, or there was a fault
            if not task.cancelled():
                task.result()

    async def _repeat(self, tick: Tick, term: ElectedTerm) -> None:
        while True:
            if not term.trusted():
                await asyncio.sleep(GAP_S)  # `hold` sees it too, and ends us
                continue
            await asyncio.sleep(max(await self._run(tick, term), GAP_S))

    async def _run(self, tick: Tick, term: ElectedTerm) -> float:
        """One run. Returns how long to wait until the next."""
        try:
            async with asyncio.timeout(RUN_S):
                wait_s = await tick.run(self._engine, term)
        except EngineClosed:
            raise
        except EngineError as error:
            log.debug("the tick %s has to wait: %s", tick.name, error)
        except TimeoutError:
            log.warning("the tick %s was stopped: it took longer than %g s", tick.name, RUN_S)
        except Exception:
            log.exception("the tick %s failed; it runs again in %g s", tick.name, tick.every)
        else:
            return tick.every if wait_s is None else wait_s
        return tick.every


async def _outlast(task: asyncio.Task[None]) -> None:
    """Wait until the task has ended, even if we are cancelled meanwhile: it hands over. Its end is
    bounded."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
