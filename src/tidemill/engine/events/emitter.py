"""The emitter: events of one process on their way out, after the commit and only while there are listeners.

**Who listens** is written in the engine: each receiver holds a lease named `events:...` and renews it every
second. A process that changes jobs polls these leases at most once in `POLL_S`, and only after it has changed
something. The event of the first change after a pause waits for the answer of the poll; the caller does not.
So every process sees a new receiver within `POLL_S`, and no lost signal can hide it. An idle process polls
nothing. A busy one reads one small list a second while there are no listeners.

**What is emitted** is handed over after the call that changed it, from any thread, and never waits. The first
event of a quiet period goes at once. After that, events are collected for `GATHER_S`. Everything that can be
slow or fail (the poll, reading a record, publishing) happens here, in a task of its own. At most
`WAITING_LIMIT` events wait; what comes on top is dropped.

**Numbers.** Every event has a number, also one that was dropped or could not be published. So a receiver sees
from the next batch how many are missing. After a burst the next batch may be far away: while there
are listeners, a mark every `MARK_S` says how far this emitter is.

**Time.** An event carries the engine's time: our clock, corrected by the difference that the last poll saw.
It is the time of the answer; for a new job, the time of the call. So a job's first event is never later than
the step that stored it, and the event of its claim is never earlier: sorted by time, the events of a job are
in order, whichever process emitted them.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from tidemill.engine.ending import end
from tidemill.engine.events.changes import Changes, KnownRuns, Missed
from tidemill.engine.events.detail import EventDetail
from tidemill.engine.events.outgoing import CallChanges, Outgoing
from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineClosed, EngineError
from tidemill.model.event import EVENTS_TOPIC
from tidemill.model.event_batch import Piece, mark, pack
from tidemill.model.time import SECOND, Instant

POLL_S = 1.0
GATHER_S = 0.05
"""On PostgreSQL each sending is a transaction that wakes every listening session: about 0.1 ms of the
server's time, and 0.03 ms for each session, beside 0.08 ms for 7,600 characters."""
MARK_S = 2.0
WAITING_LIMIT = 100_000
LAST_EVENTS_S = 1.0
"""How long the last events may hold up the end of a process."""
ANNOUNCED = "events:"
"""How the name of a receiver's lease begins."""

log = logging.getLogger("tidemill.events")


class Emitter:
    """Made on the loop of its engine; `wanted`, `clock` and `emit` are for any thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._loop = asyncio.get_running_loop()
        self._name = os.urandom(8)
        self.runs = KnownRuns()
        self._waiting = Outgoing(WAITING_LIMIT)
        self._number = 0
        """Of the next event."""
        self._received = False
        self._polling = False
        self._polled_at = float("-inf")
        """When the last poll that was answered began."""
        self._ahead: Instant | None = None
        """What to add to our monotonic clock for the engine's time."""
        self._detail = EventDetail(engine)
        self._woken = False
        self.busy = False
        """Something was handed over and not published yet."""
        self._wake = asyncio.Event()
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._complained = False
        self.lost = 0
        """Events that were dropped, or that the engine did not take."""

    @property
    def wanted(self) -> bool:
        """Whether a change should be emitted: there are listeners, or it is time to poll."""
        return self._received or self._polling or time.monotonic() - self._polled_at >= POLL_S

    def clock(self) -> Instant:
        """The engine's time as far as we know it; our own before the first poll that found a receiver."""
        ahead = self._ahead
        return time.time_ns() // 1_000 if ahead is None else round(time.monotonic() * SECOND) + ahead

    def emit(self, describe: Callable[[], Changes], *, since: float | None = None) -> None:
        """Something was changed, now or since that moment of our clock. Never waits, never raises."""
        try:
            if self._closing.is_set():
                return
            if dropped := self._waiting.add(time.monotonic() if since is None else since, describe()):
                self._lose(dropped, "they come faster than they can be published")
            elif self._waiting and not self._woken:  # a wake-up that is on its way will find this too
                self._woken = self.busy = True
                with suppress(RuntimeError):  # the loop was closed: so is the engine
                    self._loop.call_soon_threadsafe(self._go_on)
        except Exception:  # a fault of ours must not become one of the change, which has happened
            if not self._complained:
                log.exception("an event could not be emitted; the change itself is made")
            self._complained = True

    def miss(self) -> None:
        """A call was not answered: what it changed, if anything, is not known."""
        if self.wanted:
            self.emit(lambda: [Missed(None)])

    async def close(self) -> None:
        """Publish what waits, if that is quick."""
        self._go_on()
        self._closing.set()
        self._wake.set()
        if self._task is not None:
            await asyncio.wait({self._task}, timeout=LAST_EVENTS_S)
            if self._task is not None:
                await end(self._task)

    def _go_on(self) -> None:
        self._woken = False
        self._wake.set()
        if self._task is not None or not self._waiting:
            return
        if not self.wanted:  # a call began before the poll that found no listener, and ended after it
            self._forget()
            self.busy = False
        else:
            self._polling = True
            self._task = self._loop.create_task(self._run(), name="tidemill events")

    async def _run(self) -> None:
        try:
            while await self._has_listeners():
                await self._send()
                if self._closing.is_set() and not self._waiting:
                    return
                await self._gather()
        except EngineClosed:
            pass
        except Exception:
            log.exception("emitting events has failed; it begins again with the next change")
        finally:
            self._polling = False
            self.busy = bool(self._waiting)
            self._task = None

    # Who listens

    async def _has_listeners(self) -> bool:
        """Poll, if it is time to. What waits while there are no listeners is forgotten."""
        while not (self._received and time.monotonic() - self._polled_at < POLL_S):
            began = time.monotonic()
            self._polling = True
            try:
                await self._poll()
            except EngineClosed:
                raise
            except EngineError as error:
                log.debug("whether there are listeners is not known now: %s", error)
                if await self._pause(self._closing, POLL_S):
                    return False
                continue
            self._polling, self._polled_at = False, began
            if not self._received and (time.monotonic() - began < POLL_S or not self._waiting):
                self._forget()
                return False
        return True

    async def _poll(self) -> None:
        engine = self._engine
        leases = await engine.leases.list()
        self._received = any(lease.name.startswith(ANNOUNCED) for lease in leases)
        if self._received:
            began = time.monotonic()
            now = await engine.now()
            self._ahead = now - round((began + time.monotonic()) / 2 * SECOND)

    def _forget(self) -> None:
        self._waiting.take()
        self.runs.forget()

    # What is emitted

    async def _send(self) -> None:
        """Everything that waits, numbered. What cannot be published has its numbers too, whatever the
        fault."""
        taken, dropped = self._waiting.take()
        end = self._number + sum(one.size for one in taken) + dropped
        try:
            await self._send_these(taken)
        except EngineClosed:
            raise
        except Exception as error:
            self._lose(end - dropped - self._number, "a fault while emitting", error)
        finally:
            self._number = end

    async def _send_these(self, taken: Sequence[CallChanges]) -> None:
        pieces: list[Piece] = []
        for one in taken:
            at = round(one.at * SECOND) + (self._ahead or 0)
            pieces += await self._detail.pieces(one.changes, at)
        for text, count in pack(self._name, self._number, pieces, self._engine.signals.room):
            await self._publish(text, count)
            self._number += count

    async def _gather(self) -> None:
        """Wait for more; say how far we are if none comes."""
        if await self._pause(self._closing, GATHER_S):
            return
        if not self._waiting:
            self.busy = False
            self._wake.clear()
            if not await self._pause(self._wake, MARK_S):
                await self._publish(mark(self._name, self._number), 0)

    async def _publish(self, text: str, count: int) -> None:
        try:
            await self._engine.signals.publish(EVENTS_TOPIC, text)
        except EngineClosed:
            raise
        except EngineError as error:
            self._lose(count, str(error))

    def _lose(self, count: int, why: str, fault: Exception | None = None) -> None:
        self.lost += count
        level = logging.DEBUG if self._complained else logging.WARNING
        self._complained = True
        log.log(level, "%d events were not emitted (%d so far): %s", count, self.lost, why, exc_info=fault)

    async def _pause(self, event: asyncio.Event, timeout_s: float) -> bool:
        """Whether it was set within that time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await event.wait()
        return event.is_set()
