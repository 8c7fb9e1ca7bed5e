"""A worker inside another program: `async with app.worker(): ...`.

It shares the program's loop, its threads and its fate. It has no supervisor, and that sets its limits:

- Its heartbeats come from a thread with a loop and an engine of its own (`embedded_heartbeat`). So a task
  that blocks the program's loop does not cost the lease. Code that holds the GIL for a whole lease does.
- No process would see it crash, so it takes no suspects. Nothing can kill what does not stop: a thread past
  its timeout is settled when it ends, with a warning, and holds its slot until then.
- It never gives up: when the engine is out of reach, it waits.

**Declared dead.** If the whole program was stopped for longer than its lease, others have its jobs, and its
claimant is retired. Running code is told so, and a new claimant goes on. What the former claimant still has
in its held table no longer matters: others have those jobs.

**Two threads, one held table.** The heartbeat thread reads the held table. Everything else is done on the
program's loop, even writing the moment of the last answered heartbeat. The loop receives news in the order in
which the heartbeats send it: the lost runs, before the lease is fresh again. A held table is closed when the
heartbeat thread reads the next one or has stopped, and the last run in it has ended. The lock between the two
threads is taken by `locked`: Ctrl-C may come at any moment in the program's thread.

**The end.** Leaving the block drains. Jobs in threads that do not end within the shutdown timeout cannot be
taken from a living process. Then the member does not sign off, and others get those jobs when its lease is
over.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec

from tidemill.engine.events.emitting import EmittingEngine
from tidemill.engine.locked import locked
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.errors import ClaimantRetired
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Fence
from tidemill.model.member import ClaimantHeartbeat, MemberInfo
from tidemill.task.registry import Registry
from tidemill.worker.config import WorkerConfig
from tidemill.worker.member.handover import Handover
from tidemill.worker.member.info import member_info
from tidemill.worker.member.messages import Drained
from tidemill.worker.moments import Moments
from tidemill.worker.process.embedded_heartbeat import EmbeddedHeartbeat
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.process.startup import start_up
from tidemill.worker.runner.pool import RunnerPool
from tidemill.worker.worker import Worker

log = logging.getLogger("tidemill.worker")

Adopt = Callable[[Engine], Callable[[], None]]
"""Called with the engine that was opened. Returns what is called before the engine is closed."""


class EmbeddedWorker:
    """One member with one claimant, as long as the block lasts."""

    def __init__(
        self,
        registry: Registry,
        config: WorkerConfig,
        *,
        engine: Engine | None = None,
        adopt: Adopt | None = None,
    ) -> None:
        """`engine`: use this one, opened on the running loop, and do not close it."""
        queues = config.queues or registry.queue_names()
        self._config = msgspec.structs.replace(config, queues=queues)
        self._registry = registry
        self._given = engine
        self._adopt = adopt
        self.member = os.urandom(16)
        self.moments = Moments()
        self.handover = Handover()
        self.drained: Drained | None = None
        """How it ended; after the block."""

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        config = self._config
        engine = self._given or EmittingEngine(await connect(config.url, namespace=config.namespace))
        self._engine = engine
        self._disown = self._adopt(engine) if self._adopt is not None else lambda: None
        try:
            self._config = config = msgspec.structs.replace(config, began=await engine.now())
            await start_up(self._registry)
        except BaseException:
            self._disown()
            if self._given is None:
                await engine.close()
            raise
        self._processes = (
            RunnerPool(config.app, most=config.slots, url=config.url, namespace=config.namespace)
            if config.app
            else None
        )
        self._reading = threading.RLock()
        self._leaving = False
        self._new_claimant()
        self._heartbeats = EmbeddedHeartbeat(self, config, engine=engine if engine.single_process else None)
        self._heartbeats.start()
        self._working = asyncio.create_task(self._work(), name="tidemill worker")
        self._working.add_done_callback(_log_failure)
        self._publishing = asyncio.create_task(self._say_published())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._leaving = True
            self.worker.drain(self._config.shutdown_timeout_s)
            try:
                await asyncio.shield(self._working)
            except asyncio.CancelledError:
                self.worker.hurry()
                await asyncio.wait({self._working})
                raise
        finally:
            await self._close()

    def info(self) -> MemberInfo:
        """The record of this member, for its heartbeats."""
        return locked(self._reading, self._info)  # not while a new claimant takes over

    # What its heartbeats need (`heartbeat.LocalClaimant`): called in the heartbeat thread

    def heartbeat(self) -> ClaimantHeartbeat:
        return locked(self._reading, lambda: self._held_table.heartbeat(self._claimant))

    def heartbeat_answered(self, sent_ns: int | None, options: int = 0) -> bool:
        return self._on_loop(lambda: self._heartbeat_answered(sent_ns, options))

    def lost(self, fences: Sequence[Fence]) -> bool:
        return self._on_loop(lambda: self.worker.lost(fences))

    def stop_requested(self, runs: Sequence[tuple[JobId, Fence]]) -> bool:
        return self._on_loop(lambda: self.worker.stop_requested(runs))

    def publish_again(self) -> bool:
        return self._on_loop(self.worker.publish_again)

    def _info(self) -> MemberInfo:
        held_tables = [(os.getpid(), self._held_table)]
        registry = self._registry
        return member_info(
            self.member,
            self._config,
            held_tables,
            schedules=registry.schedule_names(),
            declares=registry.declared_queues(),
            tasks=registry.task_names(),
        )

    def _heartbeat_answered(self, sent_ns: int | None, options: int) -> None:
        """On the worker's loop, after it has received its lost runs: from here on the lease is fresh."""
        if sent_ns is not None:
            self._held_table.heartbeat_answered(sent_ns)
        self.worker.heartbeat_answered(sent_ns is not None, options)
        self.handover.add(self.worker.take_statistics())

    def _on_loop(self, call: Callable[[], None]) -> bool:
        with suppress(RuntimeError):  # the program's loop was closed
            self._loop.call_soon_threadsafe(call)
        return True

    def _new_claimant(self) -> None:
        held_table, claimant = HeldTable.create(self._config.held_capacity), os.urandom(16)
        locked(self._reading, lambda: self._take_over(held_table, claimant))
        self.worker = Worker(
            self._engine,
            self._registry,
            self._config,
            member=self.member,
            claimant=self._claimant,
            held_table=self._held_table,
            processes=self._processes,
            takes_suspects=False,
            supervised=False,
            moments=self.moments,
        )

    def _take_over(self, held_table: HeldTable, claimant: bytes) -> None:
        self._held_table, self._claimant = held_table, claimant

    async def _work(self) -> None:
        while True:
            try:
                self.drained = await self.worker.run()
                return
            except ClaimantRetired as error:
                log.warning("%s; going on as a new one", error)
                former, held_table = self.worker, self._held_table
                former.abandon()
                self.handover.add(former.take_statistics())
                self._new_claimant()
                former.when_over(held_table.close)
                if self._leaving:
                    self.worker.drain(0)

    async def _say_published(self) -> None:
        await self.moments.reached("published")
        self._heartbeats.published()

    async def _close(self) -> None:
        self._publishing.cancel()
        self.handover.add(self.worker.take_statistics())
        try:
            await self._heartbeats.stop(leave=not self._held_table.rows())
            if self._working.done():
                self._close_held_table()
            else:  # we were cancelled once too often to wait for it
                self._working.add_done_callback(self._close_held_table)
            if self._processes is not None:
                await self._processes.close()
        finally:
            self._disown()
            if self._given is None:
                await self._engine.close()
        if self._working.done() and not self._working.cancelled():
            self._working.result()  # a worker that could not go on is no secret

    def _close_held_table(self, _: object = None) -> None:
        self.worker.when_over(self._held_table.close)


def _log_failure(working: asyncio.Task[None]) -> None:
    """The program's block may last for ever: log at once that nothing runs any more."""
    if not working.cancelled() and (error := working.exception()) is not None:
        log.error("the embedded worker has stopped: %s: %s", type(error).__name__, error)
