"""The worker processes of a member: how many there are, and how one is replaced.

Each process has a `Respawn` that keeps it alive. The set changes in one way only: a `Respawn` is added, or
one is told to finish. A process that finishes drains as at a normal stop, but without a deadline: it claims
no more, releases what waits in its buffer, and ends when its last job has. So no job is lost or run twice,
whatever the reason of the change.

**Scaling.** `scale_to` adds processes, or finishes those that have least to do. Processes that still finish
count against the most that are allowed: the memory of the machine does not ask who drains.

**Recycling.** A process past its bounds (`RecycleBounds`) is replaced: a new one starts, and only when that
is ready does the old one finish. One at a time, so there is at most one process more than usual. If the new
one cannot be loaded, the old one goes on. If the old one dies meanwhile, it is respawned as always, and the
surplus ends when the new one is ready. A process that is above its bound of memory before it has run anything
is left alone, with an error in the log: its successor would be above it too.

**Suspects.** One process takes suspects, so that one at a time runs in the member. Its successor takes over
that duty; while both are there, the old one claims no more.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidemill.engine.protocol import Engine
from tidemill.model.stats.batch import StatsRow
from tidemill.worker.config import WorkerConfig
from tidemill.worker.member.info import memory_of
from tidemill.worker.member.respawn import Respawn
from tidemill.worker.member.worker_process import WorkerProcess

log = logging.getLogger("tidemill.worker")


class Replacing(NamedTuple):
    """A process on its way out, and its successor."""

    old: Respawn
    new: Respawn


class MemberProcesses:
    """The worker processes of one member. For use on its loop."""

    def __init__(
        self,
        engine: Engine,
        config: WorkerConfig,
        *,
        member: bytes,
        is_ready: Callable[[], None],
        has_published: Callable[[], None],
        cannot_load: Callable[[str], None],
        statistics: Callable[[Sequence[StatsRow]], None],
    ) -> None:
        """`is_ready` is called for each process that is, `has_published` when it has published its tasks,
        `cannot_load` if the app could never be loaded, `statistics` with what it counted."""
        self._engine = engine
        self._config = config
        self._member = member
        self._is_ready = is_ready
        self._has_published = has_published
        self._cannot_load = cannot_load
        self._statistics = statistics
        self._respawns: list[Respawn] = []
        self._group: asyncio.TaskGroup | None = None
        self._replacing: Replacing | None = None
        self._was_ready = False
        self._drains = False
        self._warned = False
        self.finished = 0
        """Recorded outcomes of all processes that are gone."""
        self.handed_back = 0
        """Runs that others have to run again, when the member ended."""

    async def run(self) -> None:
        """Until drained."""
        async with asyncio.TaskGroup() as self._group:
            for number in range(0 if self._drains else self._config.process_range.least):
                self._add(takes_suspects=number == 0)

    # What there is

    def alive(self) -> list[WorkerProcess]:
        """All worker processes, those that finish too."""
        return [respawn.process for respawn in self._respawns if respawn.process is not None]

    def working(self) -> list[Respawn]:
        """Those that take jobs: without those that finish, and without a successor that is not ready."""
        new = self._replacing.new if self._replacing and not self._replacing.old.finishing else None
        return [respawn for respawn in self._respawns if not respawn.finishing and respawn is not new]

    # Changing how many there are

    def scale_to(self, number: int) -> None:
        """Work with this many processes, as far as those that still finish leave room."""
        working = self.working()
        if self._drains or not working:
            return
        more = min(number - len(working), self._room())
        for _ in range(more):
            self._add(takes_suspects=False)
        if number < len(working):
            spare = [respawn for respawn in reversed(working) if self._may_finish(respawn)]
            spare.sort(key=_held)  # stable: of those that have nothing to do the youngest goes first
            for respawn in spare[: len(working) - number]:
                respawn.finish()

    def _room(self) -> int:
        spare = 1 if self._replacing else 0
        return self._config.process_range.most - (len(self._respawns) - spare)

    def _may_finish(self, respawn: Respawn) -> bool:
        return not respawn.takes_suspects and (self._replacing is None or respawn not in self._replacing)

    # Recycling

    def check_recycling(self) -> None:
        """Go on with the replacement that is under way, or begin one if a process is due."""
        if self._drains or not self._config.recycle:
            return
        if self._replacing is not None:
            old, new = self._replacing
            if old not in self._respawns:
                self._replacing = None
            elif not old.finishing and new.process is not None and new.process.ready is not None:
                old.finish()
            return
        for respawn in self.working():
            if (one := respawn.process) is not None and one.ready is not None and (reason := self._due(one)):
                log.info("worker process %d is replaced: %s", one.pid, reason)
                self._replacing = Replacing(respawn, self._add(takes_suspects=respawn.takes_suspects))
                return

    def _due(self, one: WorkerProcess) -> str:
        bounds = self._config.recycle
        memory = None if bounds.mebibytes is None else memory_of(one.pid)
        if bounds.is_above(one.memory_at_ready):
            self._warn_of_bound(one)
            memory = None
        return bounds.reason(finished=one.held_table.finished, memory=memory)

    def _warn_of_bound(self, one: WorkerProcess) -> None:
        if not self._warned:
            self._warned = True
            log.error(
                "worker process %d had more than %d MiB before it ran anything: no process is replaced for "
                "its memory. Raise --recycle-above-mb",
                one.pid,
                self._config.recycle_above_mb,
            )

    # For the whole member

    def check_stuck(self) -> None:
        """Kill processes with runs that are stuck."""
        for respawn in self._respawns:
            respawn.check_stuck()

    def drain(self, timeout_s: float | None) -> None:
        """The member ends: start nothing more, let running jobs finish until the timeout."""
        self._drains = True
        for respawn in self._respawns:
            respawn.drain(timeout_s)

    def hurry(self) -> None:
        """The deadline of the drain is now."""
        for respawn in self._respawns:
            respawn.hurry()

    def kill(self) -> None:
        """Kill all processes at once."""
        for respawn in self._respawns:
            respawn.kill()

    async def end_all(self) -> None:
        """Kill processes that are left. There are some only after a fault of our own."""
        for one in self.alive():
            one.kill()
            await one.wait()

    def _add(self, *, takes_suspects: bool) -> Respawn:
        respawn = Respawn(
            self._engine,
            self._config,
            member=self._member,
            takes_suspects=takes_suspects,
            is_ready=self._one_is_ready,
            has_published=self._has_published,
            cannot_load=self._could_not_load,
            statistics=self._statistics,
        )
        self._respawns.append(respawn)
        assert self._group is not None
        self._group.create_task(self._keep(respawn), name="respawn")
        return respawn

    async def _keep(self, respawn: Respawn) -> None:
        await respawn.run()
        self._respawns.remove(respawn)
        self.finished += respawn.finished
        self.handed_back += respawn.handed_back

    def _one_is_ready(self) -> None:
        self._was_ready = True
        self._is_ready()
        self.check_recycling()

    def _could_not_load(self, why: str) -> None:
        if not self._was_ready:
            self._cannot_load(why)


def _held(respawn: Respawn) -> int:
    """How many jobs its process has. One that is not ready has none."""
    return 0 if respawn.process is None else respawn.process.held_table.held()
