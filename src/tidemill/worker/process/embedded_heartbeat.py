"""The heartbeats of an embedded worker, in a thread with a loop and an engine of its own.

A program's loop may be blocked by whatever the program does; the loop of this thread is not. An engine whose
state lives in this process has one loop only: there the heartbeats run on that loop.

If the heartbeats end by a fault of our own, that is logged at once, and nothing else ends: the lease runs
out, the worker claims no more, and the program's block ends as it would have.
"""

import asyncio
import logging
import threading
from contextlib import suppress
from typing import Protocol

from tidemill.engine.ending import end
from tidemill.engine.events.emitting import EmittingEngine
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.errors import EngineError, EngineUnavailable
from tidemill.model.member import MemberInfo
from tidemill.worker.backoff import Backoff
from tidemill.worker.config import WorkerConfig
from tidemill.worker.member.candidate import candidate, stand
from tidemill.worker.member.handover import Handover
from tidemill.worker.member.heartbeat import Heartbeats, LocalClaimant

NOT_SIGNED_OFF = (
    "the heartbeats had ended before: this member is not signed off, its lease runs out by itself"
)

log = logging.getLogger("tidemill.worker")


class EmbeddedMember(LocalClaimant, Protocol):
    """The embedded worker whose heartbeats these are."""

    @property
    def member(self) -> bytes: ...

    @property
    def handover(self) -> Handover: ...

    def info(self) -> MemberInfo: ...


class EmbeddedHeartbeat:
    """Heartbeats and candidate of an embedded member: in a thread of its own, or on the engine's loop."""

    def __init__(self, embedded: EmbeddedMember, config: WorkerConfig, *, engine: Engine | None) -> None:
        self._embedded = embedded
        self._config = config
        self._engine = engine
        self._leave = False
        self._heartbeats: Heartbeats | None = None
        self._stopped: asyncio.Event
        self._published: asyncio.Event
        self._loop: asyncio.AbstractEventLoop
        self._task: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None
        self._up = threading.Event()

    def start(self) -> None:
        """Begin to send heartbeats."""
        if self._engine is not None:
            self._task = asyncio.create_task(self._live(), name="tidemill heartbeats")
        else:
            self._thread = threading.Thread(target=self._run, name="tidemill-heartbeats", daemon=True)
            self._thread.start()
            self._up.wait()

    def published(self) -> None:
        """The engine knows the tasks of this worker."""
        with suppress(RuntimeError):  # its loop is closed: no candidate waits any more
            self._loop.call_soon_threadsafe(self._published.set)

    async def stop(self, *, leave: bool) -> None:
        """Send no more heartbeats. `leave`: sign off, so that the engine releases whatever it thinks we
        hold."""
        self._leave = leave
        if self._task is not None:
            await asyncio.sleep(0)  # it may not have begun
            if self._task.done():
                log.warning(NOT_SIGNED_OFF)
            self._stopped.set()
            await self._task
        elif self._thread is not None:
            try:
                self._loop.call_soon_threadsafe(self._stopped.set)
            except RuntimeError:  # its loop is closed
                log.warning(NOT_SIGNED_OFF)
            await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        asyncio.run(self._live())

    async def _live(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        self._published = asyncio.Event()
        self._up.set()
        try:
            await self._heartbeat_until_stopped()
        except Exception:
            log.exception("the heartbeats of this worker have ended badly")

    async def _heartbeat_until_stopped(self) -> None:
        living = asyncio.create_task(self._heartbeat())
        stopped = asyncio.create_task(self._stopped.wait())
        await asyncio.wait({living, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        await end(living)
        if not living.cancelled() and (error := living.exception()) is not None:
            log.error("the heartbeats of this worker have ended; it takes no more jobs: %s", error)
        if self._engine is not None:
            await self._sign_off(self._engine)

    async def _heartbeat(self) -> None:
        engine = self._engine = self._engine or await self._connect()
        embedded, config = self._embedded, self._config
        standing = candidate(engine, config, embedded.member)
        heartbeats = self._heartbeats = Heartbeats(
            engine,
            info=embedded.info,
            claimants=lambda: (embedded,),
            handover=embedded.handover,
            heartbeat_s=config.heartbeat_s,
            sweep_s=config.sweep_s,
            vacant=standing.vacant if standing else None,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(heartbeats.run())
            if standing is not None:
                group.create_task(stand(standing, heartbeats.answered, self._published))

    async def _connect(self) -> Engine:
        backoff = Backoff()
        while True:
            try:
                return EmittingEngine(await connect(self._config.url, namespace=self._config.namespace))
            except EngineUnavailable as error:
                log.debug("trying again: %s", error)
                await asyncio.sleep(backoff.next_s())

    async def _sign_off(self, engine: Engine) -> None:
        if self._leave:
            try:
                if self._heartbeats is not None:
                    await self._heartbeats.hand_over()
                await engine.members.leave(self._embedded.member)
            except EngineError as error:
                log.warning("signing off failed; the lease will run out by itself: %s", error)
        if self._thread is not None:
            await engine.close()
