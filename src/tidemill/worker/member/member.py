"""One member: its worker processes, its heartbeats, its candidate for controller, and how all of it ends.

    first heartbeat answered -> processes work -> a signal, or giving up -> processes drain -> sign off

Everything here runs on one loop. It shares nothing with the worker processes but their held tables and
channels.

Heartbeats and checks for stuck jobs go on until the last worker process has ended: a drain of half a minute
must not cost the lease. A controller hands over as soon as the drain begins. A fault in any of these loops
ends the member: it is better that others take over than that a member sends heartbeats without checking its
processes.

A member that only stands for controller has no worker processes, and is otherwise the same.
"""

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tidemill.engine.protocol import Engine
from tidemill.model.errors import BadInput, EngineError
from tidemill.model.member import MemberInfo
from tidemill.worker.config import WorkerConfig
from tidemill.worker.member.candidate import candidate, stand
from tidemill.worker.member.handover import Handover
from tidemill.worker.member.heartbeat import Heartbeats
from tidemill.worker.member.info import member_info
from tidemill.worker.member.processes import MemberProcesses
from tidemill.worker.member.scaler import Scaler
from tidemill.worker.member.spawn import reap_orphans
from tidemill.worker.repeat import repeat

FINISHED, HANDED_BACK, GAVE_UP = 0, 1, 75
"""Exit codes."""
LEAVE_S = 5.0
"""How long the engine may take to answer our sign-off. After that our lease runs out by itself."""
CHECKS_PER_STUCK_TIME = 10
"""Checks for stuck jobs in the time after which a job is stuck, at most `STUCK_CHECK_S` apart."""
STUCK_CHECK_S = 1.0
RECYCLE_CHECK_S = 0.5
"""The time between two checks of whether a process is to be replaced."""

log = logging.getLogger("tidemill.worker")


class LocalMember:
    """The member that this process is."""

    def __init__(self, engine: Engine, config: WorkerConfig) -> None:
        self._engine = engine
        self._config = config
        self._member = os.urandom(16)
        self._signals = 0
        self._gave_up = False
        self._cannot_load = ""
        self._left = 0
        """Jobs that were still ours when we signed off."""
        self._ending = asyncio.Event()
        self._published = asyncio.Event()
        works = "worker" in config.roles
        if not works:
            self._published.set()  # it has no tasks
        handover = Handover()
        self._processes = MemberProcesses(
            engine,
            config,
            member=self._member,
            is_ready=self._one_is_ready,
            has_published=self._published.set,
            cannot_load=self._cannot_be_loaded,
            statistics=handover.add,
        )
        self._works = works
        self._candidate = candidate(engine, config, self._member)
        self._heartbeats = Heartbeats(
            engine,
            info=self._info,
            claimants=self._processes.alive,
            handover=handover,
            heartbeat_s=config.heartbeat_s,
            sweep_s=config.sweep_s,
            give_up_after=config.give_up_after,
            gave_up=self._give_up,
            vacant=self._candidate.vacant if self._candidate else None,
        )

    async def run(self) -> int:
        """Until a signal, or until we give up."""
        try:
            async with self._handling_signals(), self._chores():
                if await self._is_known():
                    await self._work()
        finally:
            await self._processes.end_all()
            await self._leave()
        if self._cannot_load:
            raise BadInput(self._cannot_load)
        return self._exit_code()

    async def _work(self) -> None:
        if not self._works:
            log.info("standing for controller of %s", self._engine.name)
            await self._ending.wait()
            return
        count = self._config.process_range
        processes = "1 process" if count == (1, 1) else f"{count} processes"
        log.info("working on %s: %s of %d slots", self._engine.name, processes, self._config.slots)
        await self._processes.run()

    async def _is_known(self) -> bool:
        """Wait for the first heartbeat: before it the engine would refuse every claim. False: end at once."""
        answered = asyncio.ensure_future(self._heartbeats.answered.wait())
        ending = asyncio.ensure_future(self._ending.wait())
        await asyncio.wait((answered, ending), return_when=asyncio.FIRST_COMPLETED)
        for waiting in (answered, ending):
            waiting.cancel()
        return not self._ending.is_set()

    @asynccontextmanager
    async def _chores(self) -> AsyncIterator[None]:
        """Heartbeats, stuck checks and the candidate, as long as the block lasts. A fault in one of them ends
        the member."""
        async with asyncio.TaskGroup() as group:
            chores = [
                group.create_task(self._heartbeats.run(), name="heartbeats"),
                group.create_task(repeat(self._check_stuck), name="stuck checks"),
            ]
            if self._works and self._config.process_range.varies:
                scaler = Scaler(self._engine, self._config, self._processes, member=self._member)
                chores.append(group.create_task(repeat(scaler.sample), name="scaler"))
            if self._works and self._config.recycle:
                chores.append(group.create_task(repeat(self._check_recycling), name="recycling"))
            if self._candidate is not None:
                standing = stand(self._candidate, self._heartbeats.answered, self._published)
                chores.append(group.create_task(standing, name="candidate"))
            yield
            for chore in chores:
                chore.cancel()

    async def _check_recycling(self) -> float:
        self._processes.check_recycling()
        return RECYCLE_CHECK_S

    async def _check_stuck(self) -> float:
        self._processes.check_stuck()
        if os.getpid() == 1:
            reap_orphans([one.pid for one in self._processes.alive()])
        return min(STUCK_CHECK_S, self._config.stuck_after_s / CHECKS_PER_STUCK_TIME)

    @asynccontextmanager
    async def _handling_signals(self) -> AsyncIterator[None]:
        loop, numbers = asyncio.get_running_loop(), [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:  # not under nohup
            numbers.append(signal.SIGHUP)
        for number in numbers:
            loop.add_signal_handler(number, self._stop, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _stop(self, number: signal.Signals) -> None:
        """A signal came. The first drains, the second hurries, the third kills."""
        self._signals += 1
        if self._signals == 1:
            timeout_s = self._config.shutdown_timeout_s
            log.info("%s: draining for at most %g s; again to hurry", number.name, timeout_s)
            self._drain(timeout_s)
        elif self._signals == 2:
            log.warning("%s again: handing back what still runs", number.name)
            self._processes.hurry()
        else:
            log.warning("%s once more: killing", number.name)
            self._processes.kill()

    def _drain(self, timeout_s: float | None) -> None:
        self._ending.set()
        if self._candidate is not None:
            self._candidate.stop()
        self._processes.drain(timeout_s)

    def _give_up(self) -> None:
        self._gave_up = True
        if not self._ending.is_set():
            self._drain(None)

    def _one_is_ready(self) -> None:
        """A process claims nothing before a heartbeat has named it."""
        self._heartbeats.soon()

    def _cannot_be_loaded(self, why: str) -> None:
        if not self._cannot_load:
            self._cannot_load = why
            self._drain(0)

    def _info(self) -> MemberInfo:
        living = self._processes.alive()
        ready = [one.ready for one in living if one.ready]
        queues = {queue for each in ready for queue in each.queues}
        schedules = {name for each in ready for name in each.schedules} if ready else None
        declares = {name for each in ready for name in each.declares} if ready else None
        tasks = {name for each in ready for name in each.tasks} if ready else None
        working = len(self._processes.working()) or self._config.processes
        held_tables = [(one.pid, one.held_table) for one in living]
        return member_info(
            self._member,
            self._config,
            held_tables,
            queues,
            schedules,
            declares,
            tasks,
            processes=working,
        )

    async def _leave(self) -> None:
        """Sign off. The engine releases whatever we still hold."""
        try:
            async with asyncio.timeout(LEAVE_S):
                await self._heartbeats.hand_over()
                left = await self._engine.members.leave(self._member)
        except TimeoutError:
            log.warning("the engine did not let us sign off; our lease will run out")
            return
        except EngineError as error:
            log.warning("could not sign off, our lease will run out: %s", error)
            return
        if self._works:
            self._left = left

    def _exit_code(self) -> int:
        if self._gave_up:
            return GAVE_UP
        if not self._works:
            log.info("stopped")
            return FINISHED
        finished, handed_back = self._processes.finished, self._left + self._processes.handed_back
        log.info("stopped: %d finished since the start, %d handed back", finished, handed_back)
        return HANDED_BACK if handed_back else FINISHED
