"""A worker inside another program: `async with app.worker(): ...`.

It shares the program's loop, its threads and its fate. It has no supervisor, and that sets its limits:

- It heartbeats from a thread with a loop and an engine of its own, so that a task that blocks the program's
loop
  does not cost the lease. Code that holds the GIL for a whole lease does. (`heart`)
- Nobody sees it crash, so it takes no suspects; and nobody can kill what does not stop: a thread past its
  timeout is settled when it ends, with a warning, and holds its slot until then.
- It never gives up: when the engine is out of reach, it waits.

**Declared dead.** If the whole program was stopped for longer than its lease, others have its jobs, and its
claimant is retired. What still runs is told so, and a fresh claimant goes on in its place. What the former
still has on its board is nobody's concern any more: others have those jobs.

**Two threads, one board.** The heart reads the board for its heartbeats; everything else, the moment of the
last good heartbeat included, is done on the program's loop. There, news comes in the order in which the
heartbeats tell it: what was lost, before the lease is fresh again. A board is closed when the heart has moved
on to the next one, or stopped, and the last run that was on it has ended.

**The end.** Leaving the block drains. Jobs in threads that do not end within the shutdown timeout cannot be
taken from a living process: the member then does not sign off, and others get them when its lease is over.
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
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.errors import ClaimantRetired
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Fence
from tidemill.model.member import ClaimantHeartbeat, MemberInfo
from tidemill.task.registry import Registry
from tidemill.worker.config import WorkerConfig
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
"""Told of the engine that was opened; returns what is called before it is closed."""


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
        self._reading = threading.Lock()
        self._leaving = False
        self._new_claimant()
        self._heart = EmbeddedHeartbeat(self, config, engine=engine if engine.single_process else None)
        self._heart.start()
        self._working = asyncio.create_task(self._work(), name="tidemill worker")
        self._working.add_done_callback(_tell_failure)
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
        """How the member introduces itself."""
        with self._reading:  # not while a new claimant takes over
            boards = [(os.getpid(), self._board)]
            return member_info(self.member, self._config, boards, schedules=self._registry.schedule_names())

    # What its heartbeats need (`heartbeats.Charge`): called where the heart heartbeats

    def heartbeat(self) -> ClaimantHeartbeat:
        with self._reading:  # not while a new claimant takes over
            return self._board.heartbeat(self._claimant)

    def heartbeat_answered(self, sent_ns: int | None) -> bool:
        return self._tell(lambda: self._heartbeat_answered(sent_ns))

    def lost(self, fences: Sequence[Fence]) -> bool:
        return self._tell(lambda: self.worker.lost(fences))

    def asked(self, runs: Sequence[tuple[JobId, Fence]]) -> bool:
        return self._tell(lambda: self.worker.asked(runs))

    def introduce(self) -> bool:
        return self._tell(self.worker.introduce)

    def _heartbeat_answered(self, sent_ns: int | None) -> None:
        """On the worker's loop, after it has heard what it has lost: from here on the lease is fresh."""
        if sent_ns is not None:
            self._board.heartbeat_answered(sent_ns)
        self.worker.heartbeat_answered(sent_ns is not None)

    def _tell(self, call: Callable[[], None]) -> bool:
        with suppress(RuntimeError):  # the program's loop was closed
            self._loop.call_soon_threadsafe(call)
        return True

    def _new_claimant(self) -> None:
        with self._reading:
            self._board = HeldTable.create(self._config.board_capacity)
            self._claimant = os.urandom(16)
        self.worker = Worker(
            self._engine,
            self._registry,
            self._config,
            member=self.member,
            claimant=self._claimant,
            board=self._board,
            processes=self._processes,
            takes_suspects=False,
            supervised=False,
            moments=self.moments,
        )

    async def _work(self) -> None:
        while True:
            try:
                self.drained = await self.worker.run()
                return
            except ClaimantRetired as error:
                log.warning("%s; going on as a new one", error)
                former, board = self.worker, self._board
                former.abandon()
                self._new_claimant()
                former.when_over(board.close)
                if self._leaving:
                    self.worker.drain(0)

    async def _close(self) -> None:
        try:
            await self._heart.stop(leave=not self._board.rows())
            if self._working.done():
                self._close_board()
            else:  # we were cancelled once too often to wait for it
                self._working.add_done_callback(self._close_board)
            if self._processes is not None:
                await self._processes.close()
        finally:
            self._disown()
            if self._given is None:
                await self._engine.close()
        if self._working.done() and not self._working.cancelled():
            self._working.result()  # a worker that could not go on is no secret

    def _close_board(self, _: object = None) -> None:
        self.worker.when_over(self._board.close)


def _tell_failure(working: asyncio.Task[None]) -> None:
    """The block that it serves may last for ever: say at once that nothing runs any more."""
    if not working.cancelled() and (error := working.exception()) is not None:
        log.error("the embedded worker has stopped: %s: %s", type(error).__name__, error)
