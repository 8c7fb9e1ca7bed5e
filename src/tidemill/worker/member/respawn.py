"""A seat: the place of one worker process, always taken while the member works.

    start -> loading -> ready -> (drain) -> gone -> buried -> wait -> start ...
                 \\_________________ dies ____/

A process may die at any moment. The seat learns of it from the kernel, reads the board, holds the inquest and
tells the engine: outcomes of runs that were stuck, then the claimant's retirement with the losses. The engine
gives its jobs to others in that same step, so that they are ready within a second of the death, mostly within
milliseconds. While the engine is out of reach the seat repeats it: until then nobody else can have the jobs,
because the member heartbeats on and does not mention the dead claimant.

Then a new incarnation starts: at once, if the former worked for `SHORT_LIFE_S`; after ever longer pauses if
they die young, one after the other, so that an app that cannot be imported does not eat the machine. A life
counts from the moment at which the process was ready: an app that takes long to import and then fails has
not lived at all.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tidemill.engine.boot import boot_ns
from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineUnavailable
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
"""What a worker process gets beyond the drain's deadline, before it is killed."""

LAST_TRIES = 5
"""How often a seat that is to end tells an engine that does not answer."""

T = TypeVar("T")

log = logging.getLogger("tidemill.worker")


class Respawn:
    """Keeps one worker process alive until told to end."""

    def __init__(
        self,
        engine: Engine,
        config: WorkerConfig,
        *,
        member: bytes,
        takes_suspects: bool,
        is_ready: Callable[[], None],
        unfit: Callable[[str], None],
    ) -> None:
        self.incarnation: WorkerProcess | None = None
        """The one that lives now."""
        self.finished = 0
        """Outcomes that were recorded, of all that lived here."""
        self.handed_back = 0
        """Runs of the last one that others have to do again."""
        self._was_ready = False
        self._engine = engine
        self._config = config
        self._member = member
        self._takes_suspects = takes_suspects
        self._is_ready = is_ready
        self._unfit = unfit
        self._watch = self._new_watch()
        self._closing = False
        self._drain_s: float | None = None
        self._bell = Wakeup()
        self._young_deaths = 0
        self._deadline: asyncio.TimerHandle | None = None

    async def run(self) -> None:
        """One incarnation after the other, until `drain`."""
        while not self._closing:
            pause_s = await self.live_once()
            if not self._closing:
                if pause_s:
                    log.info("the next worker process starts in %g s", pause_s)
                await self._bell.wait(pause_s)

    async def live_once(self) -> float:
        """One incarnation, from its start to its burial; the pause before the next."""
        one = await self._start()
        if one is None:
            return self._pause(0)
        self._watch = self._new_watch()
        self.incarnation = one
        if self._closing:
            one.drain(self._drain_s)
        code = await one.wait()
        lived_s = (boot_ns() - one.ready_ns) / 1e9 if one.ready_ns else 0.0
        self._was_ready = self.was_ready
        self.incarnation = None  # from now on heartbeats do not mention it
        await self._bury(one, code)
        if self._deadline is not None:
            self._deadline.cancel()
        one.close()
        return self._pause(lived_s)

    @property
    def was_ready(self) -> bool:
        """Whether a process of this seat has ever loaded the app."""
        return self._was_ready or (self.incarnation is not None and self.incarnation.ready is not None)

    def drain(self, timeout_s: float | None) -> None:
        """End: no successor. What runs may finish until the timeout (None: however long it takes)."""
        self._closing, self._drain_s = True, timeout_s
        self._bell.ring()
        if self.incarnation is not None:
            self.incarnation.drain(timeout_s)
        if timeout_s is not None:
            self._kill_in(timeout_s + END_MARGIN_S)

    def hurry(self) -> None:
        """The deadline is now."""
        if self.incarnation is not None:
            self.incarnation.hurry()
        self._kill_in(END_MARGIN_S)

    def kill(self) -> None:
        """At once."""
        if self.incarnation is not None:
            self.incarnation.kill()

    def look(self) -> None:
        """Kill the process if a run of it is stuck and the others have had their grace."""
        one = self.incarnation
        if one is None or one.killed:
            return
        stuck = self._watch.look(one.rows(), boot_ns=boot_ns(), awake_ns=time.monotonic_ns())
        if stuck:
            log.error("worker process %d has %d jobs that do not stop: killing it", one.pid, len(stuck))
            one.kill(stuck)

    async def _start(self) -> WorkerProcess | None:
        """A new one; None where the machine has no room for it now: memory, process numbers, descriptors."""
        one: WorkerProcess | None = None
        try:
            one = WorkerProcess(
                self._config,
                member=self._member,
                takes_suspects=self._takes_suspects,
                is_ready=self._is_ready,
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

    async def _bury(self, one: WorkerProcess, code: int) -> None:
        """Tell the engine what became of its runs."""
        rows, how = one.rows(), describe_exit(code)
        clean = one.drained is not None
        innocent = bool(clean or one.killed or one.leaving or one.unfit)
        findings = assign_blame(rows, now_ns=boot_ns(), how=how, innocent=innocent, stuck=one.stuck)
        self._say(one, how, len(rows), findings)
        try:
            held = await self._retire(one, findings)
        except EngineUnavailable as error:
            log.warning("its jobs go to others when our lease is over: %s", error)
            held = len(rows)
        self.finished += one.board.finished
        if self._closing:
            self.handed_back += held
            if one.drained is not None:
                self.handed_back += one.drained.released
        if one.unfit and one.ready is None:
            self._unfit(one.unfit)

    async def _retire(self, one: WorkerProcess, findings: Blame) -> int:
        """How many jobs it still held."""
        jobs = self._engine.jobs
        if findings.settlements:
            await self._until_answered(lambda: jobs.settle(findings.settlements))
        return await self._until_answered(lambda: jobs.retire(one.claimant, findings.losses))

    async def _until_answered(self, call: Callable[[], Awaitable[T]]) -> T:
        """Repeat it while the engine is out of reach: the contract answers a repeat. One that is to end
        does not wait for ever."""
        backoff, tries_left = Backoff(), LAST_TRIES
        while True:
            try:
                return await call()
            except EngineUnavailable as error:
                tries_left -= self._closing
                if not tries_left:
                    raise
                log.debug("trying again: %s", error)
                await asyncio.sleep(backoff.next_s())

    def _say(self, one: WorkerProcess, how: str, held: int, findings: Blame) -> None:
        if one.unfit:
            log.error("worker process %d cannot work: %s", one.pid, one.unfit)
        elif one.leaving:
            log.warning("worker process %d left: %s", one.pid, one.leaving)
        elif one.drained is None:
            level = logging.INFO if one.killed else logging.ERROR
            blamed = len(findings.losses)
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
