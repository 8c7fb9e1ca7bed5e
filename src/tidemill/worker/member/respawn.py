"""Respawn: keeps one worker process alive while the member works, and starts the next when it dies.

    start -> loading -> ready -> (drain) -> ended -> reported -> wait -> start ...
                 \\_________________ dies ____/

A process may die at any moment. The kernel notifies us; we read its held table, assign the blame and report
to the engine: first the outcomes of stuck runs, then the retirement of the claimant with its lost runs. In
that same step the engine makes its jobs ready for others: within a second of the death, mostly within
milliseconds. While the engine is out of reach the report is repeated. Until it arrives no other worker can
have the jobs, because the heartbeats of the member go on and do not name the dead claimant.

Then a new worker process starts. It starts at once if the last one lived for `SHORT_LIFE_S`. If processes die
young one after the other, the pauses grow, so that an app that cannot be imported does not use up the
machine. A life counts from the moment at which the process was ready: an app that takes long to import and
then fails has not lived at all.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from tidemill.engine.boot import boot_ns
from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineUnavailable
from tidemill.model.stats.batch import StatsRow
from tidemill.worker.backoff import Backoff
from tidemill.worker.claiming.wakeup import Wakeup
from tidemill.worker.config import WorkerConfig
from tidemill.worker.member.blame import Blame, assign_blame
from tidemill.worker.member.spawn import describe_exit
from tidemill.worker.member.stuck import StuckWatch
from tidemill.worker.member.worker_process import WorkerProcess

SHORT_LIFE_S = 5.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0
END_MARGIN_S = 5.0
"""How long after the drain's deadline a worker process is killed."""

LAST_TRIES = 5
"""How often a report to an engine that does not answer is tried once the member drains. Before that it is
tried until it arrives: our heartbeats go on, so no lease would free the jobs of the dead process."""

T = TypeVar("T")

log = logging.getLogger("tidemill.worker")


class Respawn:
    """Keeps one worker process alive until `finish` or `drain`."""

    def __init__(
        self,
        engine: Engine,
        config: WorkerConfig,
        *,
        member: bytes,
        takes_suspects: bool,
        is_ready: Callable[[], None],
        has_published: Callable[[], None],
        cannot_load: Callable[[str], None],
        statistics: Callable[[Sequence[StatsRow]], None] = lambda _: None,
    ) -> None:
        self.process: WorkerProcess | None = None
        """The worker process that is alive now."""
        self.finished = 0
        """Recorded outcomes of all its worker processes so far."""
        self.handed_back = 0
        """Runs of the last worker process that others have to run again."""
        self._engine = engine
        self._config = config
        self._member = member
        self.takes_suspects = takes_suspects
        self._is_ready = is_ready
        self._has_published = has_published
        self._cannot_load = cannot_load
        self._statistics = statistics
        self._watch = self._new_watch()
        self._closing = False
        self._member_ends = False
        self._drain_s: float | None = None
        self._wakeup = Wakeup()
        self._young_deaths = 0
        self._deadline: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """One worker process after the other, until `finish` or `drain`."""
        while not self._closing:
            pause_s = await self.run_once()
            if not self._closing:
                if pause_s:
                    log.info("the next worker process starts in %g s", pause_s)
                await self._wakeup.wait(pause_s)

    async def run_once(self) -> float:
        """One worker process, from its start to the report of its end. Returns the pause before the next."""
        one = await self._start()
        if one is None:
            return self._pause(0)
        self._watch = self._new_watch()
        self.process = one
        if self._closing:
            one.drain(self._drain_s)
        code = await one.wait()
        lived_s = (boot_ns() - one.ready_ns) / 1e9 if one.ready_ns else 0.0
        self.process = None  # from now on heartbeats do not mention it
        await self._report_death(one, code)
        if self._deadline is not None:
            self._deadline.cancel()
        one.close()
        return self._pause(lived_s)

    @property
    def finishing(self) -> bool:
        """Whether its worker process is its last."""
        return self._closing

    def finish(self) -> None:
        """Start no more processes, while the member goes on. What runs may finish, however long it takes."""
        self._closing = True
        self._wakeup.wake()
        if self.process is not None:
            self.process.drain(None)

    def drain(self, timeout_s: float | None) -> None:
        """The member ends: start no more processes. What runs may finish until the timeout (None: however
        long it takes)."""
        self._closing = self._member_ends = True
        self._drain_s = timeout_s
        self._wakeup.wake()
        if self.process is not None:
            self.process.drain(timeout_s)
        if timeout_s is not None:
            self._kill_in(timeout_s + END_MARGIN_S)

    def hurry(self) -> None:
        """The deadline of the drain is now."""
        if self.process is not None:
            self.process.hurry()
        self._kill_in(END_MARGIN_S)

    def kill(self) -> None:
        """Kill the worker process at once."""
        if self.process is not None:
            self.process.kill()

    def check_stuck(self) -> None:
        """Kill the process if one of its runs is stuck and the others have had their grace."""
        one = self.process
        if one is None or one.killed:
            return
        stuck = self._watch.check(one.rows(), boot_ns=boot_ns(), awake_ns=time.monotonic_ns())
        if stuck:
            log.error("worker process %d has %d jobs that do not stop: killing it", one.pid, len(stuck))
            one.kill(stuck)

    async def _start(self) -> WorkerProcess | None:
        """Start a process. None: the machine has no room for it now (memory, process ids, descriptors)."""
        one: WorkerProcess | None = None
        try:
            one = WorkerProcess(
                self._config,
                member=self._member,
                takes_suspects=self.takes_suspects,
                is_ready=self._is_ready,
                has_published=self._has_published,
                statistics=self._statistics,
            )
            await one.start()
        except OSError as error:
            log.error("a worker process could not be started: %s", error)
            if one is not None:
                one.close()
            return None
        return one

    def _kill_in(self, delay_s: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(delay_s, self.kill)

    async def _report_death(self, one: WorkerProcess, code: int) -> None:
        """Report to the engine what became of its runs."""
        rows, how = one.rows(), describe_exit(code)
        clean = one.drained is not None
        innocent = bool(clean or one.killed or one.leaving or one.cannot_load)
        blame = assign_blame(rows, now_ns=boot_ns(), how=how, innocent=innocent, stuck=one.stuck)
        self._log_end(one, how, len(rows), blame)
        try:
            held = await self._retire(one, blame)
        except EngineUnavailable as error:
            log.warning("its jobs go to others when our lease is over: %s", error)
            held = len(rows)
        self.finished += one.held_table.finished
        if self._member_ends:
            self.handed_back += held
            if one.drained is not None:
                self.handed_back += one.drained.released
        if one.cannot_load and one.ready is None:
            self._cannot_load(one.cannot_load)

    async def _retire(self, one: WorkerProcess, blame: Blame) -> int:
        """Settle what timed out, retire the claimant. Returns how many jobs it still held."""
        jobs = self._engine.jobs
        if blame.settlements:
            await self._until_answered(lambda: jobs.settle(blame.settlements))
        return await self._until_answered(lambda: jobs.retire(one.claimant, blame.lost_runs))

    async def _until_answered(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat the call while the engine is out of reach: the contract answers a repeat. When the member
        ends it gives up after `LAST_TRIES`."""
        backoff, tries_left = Backoff(), LAST_TRIES
        while True:
            try:
                return await call()
            except EngineUnavailable as error:
                tries_left -= self._member_ends
                if not tries_left:
                    raise
                log.debug("trying again: %s", error)
                await asyncio.sleep(backoff.next_s())

    def _log_end(self, one: WorkerProcess, how: str, held: int, blame: Blame) -> None:
        if one.cannot_load:
            log.error("worker process %d cannot work: %s", one.pid, one.cannot_load)
        elif one.leaving:
            log.warning("worker process %d left: %s", one.pid, one.leaving)
        elif one.drained is None:
            level = logging.INFO if one.killed else logging.ERROR
            blamed = len(blame.lost_runs)
            log.log(
                level, "worker process %d is gone: %s; it held %d jobs, %d blamed", one.pid, how, held, blamed
            )

    def _pause(self, lived_s: float) -> float:
        if lived_s >= SHORT_LIFE_S:
            self._young_deaths = 0
            return 0
        self._young_deaths += 1
        if self._young_deaths == 1:
            return 0
        return min(FIRST_PAUSE_S * 2.0 ** min(self._young_deaths - 2, 10), LONGEST_PAUSE_S)

    def _new_watch(self) -> StuckWatch:
        return StuckWatch(after_s=self._config.stuck_after_s, grace_s=self._config.stuck_grace_s)
