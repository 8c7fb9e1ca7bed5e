"""Heartbeats: how a member keeps its lease, and how it notices that others have lost theirs.

**Who has authority.** The engine alone says who holds a run. A member (this process and the worker
processes it heartbeats for) may run what it claimed while its lease lasts: one lease from the moment at which
its last answered heartbeat was *sent*. That moment goes on every board, where each worker process compares it
with the boot clock before it claims or starts anything. So a machine that was suspended, or a supervisor that
was stopped, starts nothing on the strength of an old heartbeat.

**One heartbeat for all.** A heartbeat carries, for every worker process, the number of the last claim whose
answer it has and the fences it holds, read from its board: true even while its loop is blocked. The engine
releases what was claimed and never arrived, and answers with what is no longer ours (`lost`) and with what
was asked to stop (`asked`). Both are told to the process that holds the run, once each; what could not be
told, or is not on a board yet, comes again with the next heartbeat.

**News before freshness.** After an outage a process waits for a fresh lease with runs that may no longer be
its own. It is told of those first, and only then that its lease is fresh again. A process that could not be
told what it has lost keeps its old lease: it starts nothing until a later heartbeat gets through to it.

**An engine that lost data** (`rolled_back`: restarted without its file, a replica that lagged took over) is
an error in the log. What ran and is not known there any more is `lost`, what it believes to be running and
has ended is released and runs again; tasks, queues and schedules are published again by every process, before
its next claim: otherwise limits would be missing, and nothing would be fired.

**Rounds never overlap**: a slow engine makes heartbeats rarer, not more numerous. A signal on the member's
topic makes the next one early, at most every `GAP_S`.

**When the engine is out of reach** heartbeats fail and are counted. Nothing else happens here: claims stop by
the boards as soon as the lease is over, what runs goes on, and the first answered heartbeat puts everything
right. After `give_up_after` failures in a row `gave_up` is called, once. Embedded workers never give up.

**Sweeping** for members that are gone is every member's duty. Whether it is entitled to is for the engine to
decide (only after its own heartbeats have come for a full lease without a gap), not for us.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from tidemill.engine.boot import boot_ns
from tidemill.engine.protocol import BATCH_LIMIT, Engine
from tidemill.model.errors import EngineClosed, EngineError
from tidemill.model.event import CONTROLLER_TOPIC, member_topic
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Fence
from tidemill.model.member import ClaimantHeartbeat, HeartbeatReply, MemberInfo
from tidemill.worker.claiming.wakeup import Wakeup
from tidemill.worker.repeat import repeat

GAP_S = 0.05
"""The least time between two heartbeats, however many signals come."""
LAST_HEARTBEAT_S = 5.0
"""How long a heartbeat under way may hold up our end."""
RESUBSCRIBE_S = 1.0
"""The pause before listening again after the engine refused."""

T = TypeVar("T")

log = logging.getLogger("tidemill.worker")


async def _to_its_end(call: Coroutine[Any, Any, T]) -> T:
    """Cancelled or not, a heartbeat under way ends before we go on: one that overtook our sign-off would
    bring this member back to life."""
    heartbeating = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(heartbeating)
    except asyncio.CancelledError:
        await asyncio.wait({heartbeating}, timeout=LAST_HEARTBEAT_S)
        if heartbeating.done():
            heartbeating.exception()  # whatever it was, it does not matter any more
        raise


class Charge(Protocol):
    """A claimant that this member heartbeats for. False: it could not be told now."""

    def heartbeat(self) -> ClaimantHeartbeat:
        """What it holds now, from its board."""
        ...

    def heartbeat_answered(self, sent_ns: int | None) -> bool:
        """A heartbeat that was sent at this moment of the boot clock was answered (for its board); None:
        not."""
        ...

    def lost(self, fences: Sequence[Fence]) -> bool:
        """These runs belong to others now."""
        ...

    def asked(self, runs: Sequence[tuple[JobId, Fence]]) -> bool:
        """Cancel was asked for these."""
        ...

    def introduce(self) -> bool:
        """The engine has forgotten tasks, queues and schedules, or may have: they are to be published again,
        before anything else is claimed."""
        ...


class Heartbeats:
    """The heartbeats and sweeps of one member. All of it runs on the loop of `engine`."""

    def __init__(
        self,
        engine: Engine,
        *,
        info: Callable[[], MemberInfo],
        charges: Callable[[], Iterable[Charge]],
        heartbeat_s: float,
        sweep_s: float,
        give_up_after: int | None = None,
        gave_up: Callable[[], None] = lambda: None,
        vacant: Callable[[], None] | None = None,
    ) -> None:
        """`vacant`: told when a controller says that it gave up."""
        self._engine = engine
        self._info = info
        self._charges = charges
        self._heartbeat_s = heartbeat_s
        self._sweep_s = sweep_s
        self._give_up_after = give_up_after
        self._gave_up = gave_up
        self._vacant = vacant
        self._member = info().id
        self._wake = Wakeup()
        self._number = 0
        self._told: set[tuple[str, Fence]] = set()
        self.failures = 0
        """Failed heartbeats in a row."""
        self.answered = asyncio.Event()
        """The first heartbeat was answered: the engine knows this member."""

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(repeat(self.heartbeat, self._wake, gap_s=GAP_S), name="heartbeats")
            group.create_task(repeat(self.sweep), name="sweeps")
            group.create_task(repeat(self.listen), name="asked to stop")

    def soon(self) -> None:
        """Heartbeat now rather than later."""
        self._wake.ring()

    async def heartbeat(self) -> float:
        """One round."""
        began, sent_ns = time.monotonic(), boot_ns()
        charges = list(self._charges())
        heartbeats = [charge.heartbeat() for charge in charges]
        try:
            reply = await _to_its_end(self._engine.members.heartbeat(self._info(), heartbeats))
        except EngineClosed:
            raise
        except EngineError as error:
            self._failed(error)
            for charge in charges:
                charge.heartbeat_answered(None)
        else:
            forgotten = self._succeeded(reply)
            self._forget_old_news(reply)
            for charge, heartbeat in zip(charges, heartbeats, strict=True):
                if forgotten:
                    charge.introduce()
                if self._tell(charge, heartbeat, reply):
                    charge.heartbeat_answered(sent_ns)
        return max(GAP_S, self._heartbeat_s - (time.monotonic() - began))

    async def sweep(self) -> float:
        """One look for members that are gone."""
        try:
            reclaimed = await self._engine.jobs.reclaim(self._member)
        except EngineClosed:
            raise
        except EngineError as error:
            log.debug("the sweep failed: %s", error)
            return self._sweep_s
        for name in reclaimed.gone:
            log.warning("member %s is gone; its jobs go to others", name)
        if reclaimed.jobs:
            log.info("gave back %d jobs of members that are gone", reclaimed.jobs)
        return 0 if reclaimed.jobs >= BATCH_LIMIT else self._sweep_s

    async def listen(self) -> float:
        """Wait for word that a job of ours was asked to stop (a heartbeat then tells which), or that there is
        no controller. One subscription for both."""
        topics = {member_topic(self._member): self.soon}
        if self._vacant is not None:
            topics[CONTROLLER_TOPIC] = self._vacant
        try:
            subscription = await self._engine.signals.subscribe(*topics)
        except EngineClosed:
            raise
        except EngineError as error:
            log.debug("listening failed: %s", error)
            return RESUBSCRIBE_S
        try:
            # "Something may have changed" comes with every commit of our own children: the next heartbeat is
            # early enough for a signal that was lost.
            while (signal := await subscription.next()) is not None:
                if (told := topics.get(signal.topic)) is not None:
                    told()
        except EngineClosed:
            raise
        except EngineError as error:
            log.debug("listening failed: %s", error)
        finally:
            await subscription.close()
        return RESUBSCRIBE_S

    def _failed(self, error: EngineError) -> None:
        self.failures += 1
        level = logging.WARNING if self.failures == 1 else logging.DEBUG
        log.log(level, "heartbeat failed (%d in a row): %s", self.failures, error)
        if self.failures == self._give_up_after:
            log.error("%d heartbeats failed in a row: giving up once nothing runs", self.failures)
            self._gave_up()

    def _succeeded(self, reply: HeartbeatReply) -> bool:
        """Whether the engine may have forgotten what this member's processes have published."""
        if self.failures:
            log.info("the engine answers again after %d failed heartbeats", self.failures)
        rolled_back = reply.rolled_back or reply.number < self._number
        forgotten = rolled_back or (reply.new and self.answered.is_set())
        if rolled_back:
            log.error(
                "the engine has lost data: jobs and outcomes that it had acknowledged are missing, jobs that "
                "had ended may run again; tasks, queues and schedules of the code are published again, what "
                "was set at run time is not. Look at what its server keeps (a restart without its file, a "
                "failover to a replica that lagged)"
            )
        elif forgotten:
            log.warning("this member was declared gone; what it held belongs to others now")
        self._number = reply.number
        self.failures = 0
        self.answered.set()
        return forgotten

    def _forget_old_news(self, reply: HeartbeatReply) -> None:
        """What the engine no longer says was heard by whom it concerned, or concerns nobody any more."""
        news = {("lost", fence) for fence in reply.lost} | {("asked", ask.fence) for ask in reply.asked}
        self._told &= news

    def _tell(self, charge: Charge, heartbeat: ClaimantHeartbeat, reply: HeartbeatReply) -> bool:
        """To one process the news of its own runs, once. Whether it knows now of all that it has lost."""
        held = set(heartbeat.held)
        lost = [fence for fence in reply.lost if fence in held and ("lost", fence) not in self._told]
        knows = not lost or charge.lost(lost)
        if knows:
            self._told.update(("lost", fence) for fence in lost)
        asked = [
            (ask.id, ask.fence)
            for ask in reply.asked
            if ask.fence in held and ("asked", ask.fence) not in self._told
        ]
        if asked and charge.asked(asked):
            self._told.update(("asked", fence) for _, fence in asked)
        return knows
