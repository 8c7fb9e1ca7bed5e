"""Heartbeats: how a member keeps its lease, and how it notices that others have lost theirs.

**Who has authority.** Only the engine says who holds a run. A member is this process and the worker processes
that it sends heartbeats for. It may run what it claimed while its lease lasts: one lease from the moment at
which its last answered heartbeat was *sent*. That moment is written to every held table. Each worker process
compares it with the boot clock before it claims or starts anything. So a machine that was suspended, or a
supervisor that was stopped, starts nothing because of an old heartbeat.

**One heartbeat for all.** For every worker process a heartbeat carries the number of the last claim whose
answer arrived, and the fences that the process holds. Both are read from its held table, so they are true
even while the loop of the process is blocked. The engine releases what was claimed and never arrived. It
answers with the runs that are no longer ours (`lost`) and those whose stop was requested (`stop_requests`).
Both go once to the process that holds the run. What could not be sent, or is not in a held table yet, comes
again with the next heartbeat.

**Lost runs before freshness.** After an outage a process waits for a fresh lease, and some of its runs may
belong to others by then. It is first sent the lost runs, and only then that its lease is fresh again. A
process that could not be sent its lost runs keeps its old lease: it starts nothing until a later heartbeat
gets through to it.

**An engine that lost data** (`rolled_back`: restarted without its file, or a replica that lagged took over)
is an error in the log. Runs that the engine no longer knows are `lost`. Runs that it believes to be running
and that have ended are released and run again. Every process publishes its tasks, queues and schedules again
before its next claim: otherwise limits would be missing, and nothing would be fired.

**Heartbeats never overlap**: a slow engine makes heartbeats rarer, not more numerous. A signal on the
member's topic makes the next one early, at most every `GAP_S`.

**Statistics** of the worker processes go with heartbeats, in numbered batches (`handover`).

**When the engine is out of reach** heartbeats fail and are counted. Nothing else happens here. Claims stop
because the held tables show when the lease is over; running code goes on; and the first answered heartbeat
restores everything. After `give_up_after` failures in a row `gave_up` is called, once. Embedded workers never
give up.

**Sweeping** for members that are gone is every member's duty. The engine decides whether a member is entitled
to sweep: only after its own heartbeats have come for a full lease without a gap.
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
from tidemill.worker.member.handover import Handover
from tidemill.worker.repeat import repeat

GAP_S = 0.05
"""The least time between two heartbeats, however many signals come."""
LAST_HEARTBEAT_S = 5.0
"""How long the end of this member waits for a heartbeat that is under way."""
RESUBSCRIBE_S = 1.0
"""The pause before listening again after the engine refused."""

T = TypeVar("T")

log = logging.getLogger("tidemill.worker")


async def _to_its_end(call: Coroutine[Any, Any, T]) -> T:
    """Wait for the answer, even if we are cancelled meanwhile. A heartbeat that arrived after our sign-off
    would bring this member back to life."""
    heartbeating = asyncio.ensure_future(call)
    try:
        return await asyncio.shield(heartbeating)
    except asyncio.CancelledError:
        await asyncio.wait({heartbeating}, timeout=LAST_HEARTBEAT_S)
        if heartbeating.done():
            heartbeating.exception()  # whatever it was, it does not matter any more
        raise


class LocalClaimant(Protocol):
    """A claimant that this member sends heartbeats for. A method returns False if it could not be reached
    now."""

    def heartbeat(self) -> ClaimantHeartbeat:
        """What the claimant holds now, from its held table."""
        ...

    def heartbeat_answered(self, sent_ns: int | None, options: int = 0) -> bool:
        """A heartbeat that was sent at this moment of the boot clock was answered (for the held table). None:
        the heartbeat was not answered. `options`: another number if the options of queues have changed."""
        ...

    def lost(self, fences: Sequence[Fence]) -> bool:
        """These runs belong to others now."""
        ...

    def stop_requested(self, runs: Sequence[tuple[JobId, Fence]]) -> bool:
        """A stop of these runs was requested."""
        ...

    def publish_again(self) -> bool:
        """The engine may have forgotten tasks, queues and schedules: publish them again before the next
        claim."""
        ...


class Heartbeats:
    """The heartbeats and sweeps of one member. All of it runs on the loop of `engine`."""

    def __init__(
        self,
        engine: Engine,
        *,
        info: Callable[[], MemberInfo],
        claimants: Callable[[], Iterable[LocalClaimant]],
        handover: Handover,
        heartbeat_s: float,
        sweep_s: float,
        give_up_after: int | None = None,
        gave_up: Callable[[], None] = lambda: None,
        vacant: Callable[[], None] | None = None,
    ) -> None:
        """`handover` has the statistics of the claimants. `vacant` is called when a controller signals that
        it gave up its lease."""
        self._engine = engine
        self._info = info
        self._claimants = claimants
        self._handover = handover
        self._heartbeat_s = heartbeat_s
        self._sweep_s = sweep_s
        self._give_up_after = give_up_after
        self._gave_up = gave_up
        self._vacant = vacant
        self._member = info().id
        self._wakeup = Wakeup()
        self._number = 0
        self._delivered: set[tuple[str, Fence]] = set()
        self.failures = 0
        """Failed heartbeats in a row."""
        self.answered = asyncio.Event()
        """The first heartbeat was answered: the engine knows this member."""

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(repeat(self.heartbeat, self._wakeup, gap_s=GAP_S), name="heartbeats")
            group.create_task(repeat(self.sweep), name="sweeps")
            group.create_task(repeat(self.listen), name="stop requests")

    def soon(self) -> None:
        """Send the next heartbeat now, not at its time."""
        self._wakeup.wake()

    async def heartbeat(self) -> float:
        """Send one heartbeat. Returns how long to wait until the next."""
        began, sent_ns = time.monotonic(), boot_ns()
        claimants = list(self._claimants())
        heartbeats = [claimant.heartbeat() for claimant in claimants]
        try:
            call = self._engine.members.heartbeat(self._info(), heartbeats, statistics=self._handover.batch())
            reply = await _to_its_end(call)
        except EngineClosed:
            raise
        except EngineError as error:
            self._failed(error)
            for claimant in claimants:
                claimant.heartbeat_answered(None)
        else:
            self._handover.applied()
            forgotten = self._succeeded(reply)
            self._forget_old_news(reply)
            for claimant, heartbeat in zip(claimants, heartbeats, strict=True):
                if forgotten:
                    claimant.publish_again()
                if self._deliver(claimant, heartbeat, reply):
                    claimant.heartbeat_answered(sent_ns, reply.options)
        return max(GAP_S, self._heartbeat_s - (time.monotonic() - began))

    async def hand_over(self) -> None:
        """Send the statistics that are left, at the end of the member, when nothing runs any more. They are
        not worth a second try."""
        while (batch := self._handover.batch()) is not None:
            try:
                await self._engine.members.heartbeat(self._info(), statistics=batch)
            except EngineError as error:
                log.debug("the last statistics were not handed over: %s", error)
                return
            self._handover.applied()

    async def sweep(self) -> float:
        """Search once for members that are gone. Returns how long to wait until the next search."""
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
            log.info("released %d jobs of members that are gone", reclaimed.jobs)
        return 0 if reclaimed.jobs >= BATCH_LIMIT else self._sweep_s

    async def listen(self) -> float:
        """Wait for a signal that one of our jobs should stop (the next heartbeat says which one), or that
        there is no controller. One subscription for both."""
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
            # "Something may have changed" comes with every commit of our own worker processes. It is ignored:
            # the next heartbeat is early enough for a signal that was lost.
            while (signal := await subscription.next()) is not None:
                if (react := topics.get(signal.topic)) is not None:
                    react()
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
        """Forget what the engine no longer says: it was received, or concerns no run any more."""
        news = {("lost", fence) for fence in reply.lost} | {
            ("stop", stop.fence) for stop in reply.stop_requests
        }
        self._delivered &= news

    def _deliver(self, claimant: LocalClaimant, heartbeat: ClaimantHeartbeat, reply: HeartbeatReply) -> bool:
        """Send a claimant the news of its own runs, once. Returns whether it knows all its lost runs."""
        held = set(heartbeat.held)
        lost = [fence for fence in reply.lost if fence in held and ("lost", fence) not in self._delivered]
        knows = not lost or claimant.lost(lost)
        if knows:
            self._delivered.update(("lost", fence) for fence in lost)
        stops = [
            (stop.id, stop.fence)
            for stop in reply.stop_requests
            if stop.fence in held and ("stop", stop.fence) not in self._delivered
        ]
        if stops and claimant.stop_requested(stops):
            self._delivered.update(("stop", fence) for _, fence in stops)
        return knows
