"""The election: which member is the controller, and for how long that can be trusted.

    candidate --- the lease is free: acquire --> elected --- renewed in time --> elected
        ^                                          |   |
        |--- refused, or out of reach too long ----+   +--- told to end: release, and signal the candidates

**Who has authority.** The engine: a lease of a fixed name, with a fence that grows with every election. The
holder is a member's id, new for every start. The elected member renews the lease with every heartbeat. It
trusts its term only until request start + lease - margin (`term`). After that it does nothing more, and logs
so.

**Candidates wait for a moment, not in a loop.** A candidate reads who holds the lease and until when, and
reads again at that time: about once in a lease, because the holder keeps renewing. It tries to take the lease
only when the lease is free. Each candidate waits a random moment more, so that a thousand of them do not try
at once. A holder that ends releases the lease and signals that, which wakes the candidates. If the signal is
lost, the end of the lease wakes them.

**When clocks or networks misbehave.** Only the engine's clock says when a lease is over. Our own clock is
used for spans only, so a wrong date does not matter. An elected member that cannot reach the engine steps
down by itself before the lease is over. A renewal whose answer was lost may have been granted: the lease then
goes on unused, and its holder, standing again, gets it back under the same fence. So two members can both
believe to be elected only for a step that had begun before, and every tick is safe under that.
"""

import asyncio
import logging
import random

from tidemill.controller.term import ElectedTerm
from tidemill.engine.boot import boot_ns
from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineClosed, EngineError
from tidemill.model.event import CONTROLLER_TOPIC
from tidemill.model.time import span_of
from tidemill.model.view import CONTROLLER_LEASE

SHORTEST_WAIT_S = 0.01
SPREAD = 0.25
"""Candidates try to take the lease within this part of a heartbeat after it is over."""
TRIES_PER_LEASE = 5
"""A renewal that failed is tried again this soon."""
RELEASE_S = 2.0
"""How long the engine may take to release the lease. After that the lease runs out by itself."""

log = logging.getLogger("tidemill.controller")


class Election:
    """One member's part in it."""

    def __init__(self, engine: Engine, *, member: bytes, lease_s: float, heartbeat_s: float) -> None:
        self._engine = engine
        self._holder = member.hex()
        self._lease_s = lease_s
        self._heartbeat_s = heartbeat_s
        self._vacant = asyncio.Event()

    def vacant(self) -> None:
        """The controller has given up the lease: read it now."""
        self._vacant.set()

    async def won(self) -> ElectedTerm:
        """Stand until elected."""
        while True:
            self._vacant.clear()
            try:
                wait_s = await self._until_free_s()
                if wait_s <= 0 and (term := await self._acquire()) is not None:
                    return term
            except EngineClosed:
                raise
            except EngineError as error:
                log.debug("the election has to wait: %s", error)
                wait_s = self._heartbeat_s
            await self._wait(max(wait_s, SHORTEST_WAIT_S) + random.uniform(0, SPREAD * self._heartbeat_s))

    async def hold(self, term: ElectedTerm) -> None:
        """Renew the term until it is lost."""
        pause_s = self._heartbeat_s
        while True:
            await asyncio.sleep(min(pause_s, term.left_s()))
            left_s = term.left_s()
            if not left_s:
                _step_down(term, "its lease was not renewed in time")
                return
            sent_ns, pause_s = boot_ns(), self._heartbeat_s
            try:
                async with asyncio.timeout(left_s):
                    renewed = await self._renew(term)
            except TimeoutError:
                continue  # the term is over
            except EngineClosed:
                raise
            except EngineError as error:
                log.debug("the lease was not renewed: %s", error)
                pause_s = min(self._heartbeat_s, self._lease_s / TRIES_PER_LEASE)
                continue
            if not renewed:
                _step_down(term, "its lease is over or has another holder")
                return
            term.prolong(sent_ns)

    async def give_up(self, term: ElectedTerm) -> None:
        """Hand over at once: a candidate may be elected now. Never fails."""
        term.end()
        try:
            async with asyncio.timeout(RELEASE_S):
                if await self._engine.leases.release(CONTROLLER_LEASE, fence=term.fence):
                    log.info(
                        "handed the controller's work over (term %d): whoever stands may be elected",
                        term.fence,
                    )
                    await self._engine.signals.publish(CONTROLLER_TOPIC)
        except (EngineError, TimeoutError) as error:
            log.warning("the controller's lease could not be given up, it will run out: %s", error)
        except Exception:  # ours: it must not stand in the way of an end
            log.exception("the controller's lease could not be given up, it will run out")

    async def rest(self) -> None:
        """Wait for one heartbeat, whatever signals come: after a fault."""
        await asyncio.sleep(self._heartbeat_s)

    async def _until_free_s(self) -> float:
        """How long others hold the lease; 0: it is free, or ours already."""
        leases = [lease for lease in await self._engine.leases.list() if lease.name == CONTROLLER_LEASE]
        if not leases or leases[0].holder == self._holder:
            return 0
        left_s = (leases[0].expires_at - await self._engine.now()) / 1e6
        # a clock that was set back must not make us wait for a day
        return min(max(left_s, SHORTEST_WAIT_S), self._lease_s)

    async def _acquire(self) -> ElectedTerm | None:
        sent_ns = boot_ns()
        lease = await self._engine.leases.acquire(
            CONTROLLER_LEASE, holder=self._holder, ttl=span_of(self._lease_s)
        )
        if lease is None:
            return None
        term = ElectedTerm(lease.fence, sent_ns=sent_ns, lease_s=self._lease_s)
        if not term.trusted():  # the answer took longer than the lease lasts
            return None
        log.info("elected controller (term %d)", term.fence)
        return term

    async def _renew(self, term: ElectedTerm) -> bool:
        return await self._engine.leases.renew(CONTROLLER_LEASE, fence=term.fence, ttl=span_of(self._lease_s))

    async def _wait(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._vacant.wait()
        except TimeoutError:
            return


def _step_down(term: ElectedTerm, why: str) -> None:
    term.end()
    log.warning("no longer the controller (term %d): %s", term.fence, why)
