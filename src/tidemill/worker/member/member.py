"""The crew of one member: its seats, its heartbeats, its candidate for controller, and how all of it ends.

    is known (first heartbeat) -> seats work -> a signal, or giving up -> seats drain -> sign off

Everything here runs on one loop and shares nothing with the worker processes but their boards and channels.
Heartbeats and looks for stuck jobs go on until the last seat is empty: a drain of half a minute must not cost
the lease. A controller hands over as soon as the drain begins. A fault in any of them ends the crew: better
that others take over than that a member heartbeats without looking.

A member that only stands for controller has no seats, and otherwise lives the same life.
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
from tidemill.worker.member.heartbeat import Heartbeats
from tidemill.worker.member.info import member_info
from tidemill.worker.member.respawn import Respawn
from tidemill.worker.member.spawn import reap_orphans
from tidemill.worker.member.worker_process import WorkerProcess
from tidemill.worker.repeat import repeat

FINISHED, HANDED_BACK, GAVE_UP = 0, 1, 75
"""Exit codes."""
LEAVE_S = 5.0
"""How long the engine may take to let us go; past that our lease runs out by itself."""
LOOKS_PER_STUCK_TIME = 10
"""Looks for stuck jobs in the time after which a job is stuck, at most `LOOK_S` apart."""
LOOK_S = 1.0

log = logging.getLogger("tidemill.worker")


class LocalMember:
    """One member: its seats, its heartbeats, its end."""

    def __init__(self, engine: Engine, config: WorkerConfig) -> None:
        self._engine = engine
        self._config = config
        self._member = os.urandom(16)
        self._signals = 0
        self._gave_up = False
        self._unfit = ""
        self._left = 0
        """Jobs that were still ours when we signed off."""
        self._ending = asyncio.Event()
        works = "worker" in config.roles
        self._seats = [
            # A suspect runs alone: one seat takes them, so that there is one at a time in the member.
            Respawn(
                engine,
                config,
                member=self._member,
                takes_suspects=number == 0,
                is_ready=self._one_is_ready,
                unfit=self._cannot_be_loaded,
            )
            for number in range(config.processes if works else 0)
        ]
        self._candidate = candidate(engine, config, self._member)
        self._heartbeats = Heartbeats(
            engine,
            info=self._info,
            charges=self._incarnations,
            heartbeat_s=config.heartbeat_s,
            sweep_s=config.sweep_s,
            give_up_after=config.give_up_after,
            gave_up=self._give_up,
            vacant=self._candidate.vacant if self._candidate else None,
        )

    async def run(self) -> int:
        """Until a signal, or until we give up."""
        try:
            async with self._hearing_signals(), self._chores():
                if await self._is_known():
                    await self._work()
        finally:
            await self._end_all()
            await self._leave()
        if self._unfit:
            raise BadInput(self._unfit)
        return self._exit_code()

    async def _work(self) -> None:
        if not self._seats:
            log.info("standing for controller of %s", self._engine.name)
            await self._ending.wait()
            return
        count = self._config.processes
        processes = "1 process" if count == 1 else f"{count} processes"
        log.info("working on %s: %s of %d slots", self._engine.name, processes, self._config.slots)
        async with asyncio.TaskGroup() as group:
            for seat in self._seats:
                group.create_task(seat.run(), name="seat")

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
        """Heartbeats, looks and the candidate, as long as the block lasts. A fault in one of them ends it
        all."""
        async with asyncio.TaskGroup() as group:
            chores = [
                group.create_task(self._heartbeats.run(), name="heartbeats"),
                group.create_task(repeat(self._look), name="looks"),
            ]
            if self._candidate is not None:
                standing = stand(self._candidate, self._heartbeats.answered)
                chores.append(group.create_task(standing, name="candidate"))
            yield
            for chore in chores:
                chore.cancel()

    async def _look(self) -> float:
        for seat in self._seats:
            seat.look()
        if os.getpid() == 1:
            reap_orphans([one.pid for one in self._incarnations()])
        return min(LOOK_S, self._config.stuck_after_s / LOOKS_PER_STUCK_TIME)

    @asynccontextmanager
    async def _hearing_signals(self) -> AsyncIterator[None]:
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
        """A signal came: drain, hurry, kill."""
        self._signals += 1
        if self._signals == 1:
            timeout_s = self._config.shutdown_timeout_s
            log.info("%s: draining for at most %g s; again to hurry", number.name, timeout_s)
            self._drain(timeout_s)
        elif self._signals == 2:
            log.warning("%s again: handing back what still runs", number.name)
            for seat in self._seats:
                seat.hurry()
        else:
            log.warning("%s once more: killing", number.name)
            for seat in self._seats:
                seat.kill()

    def _drain(self, timeout_s: float | None) -> None:
        self._ending.set()
        if self._candidate is not None:
            self._candidate.stop()
        for seat in self._seats:
            seat.drain(timeout_s)

    def _give_up(self) -> None:
        self._gave_up = True
        if not self._ending.is_set():
            self._drain(None)

    def _one_is_ready(self) -> None:
        """A process takes nothing before a heartbeat has spoken of it."""
        self._heartbeats.soon()

    def _cannot_be_loaded(self, why: str) -> None:
        if not self._unfit and not any(seat.was_ready for seat in self._seats):
            self._unfit = why
            self._drain(0)

    def _incarnations(self) -> list[WorkerProcess]:
        return [seat.incarnation for seat in self._seats if seat.incarnation is not None]

    def _info(self) -> MemberInfo:
        living = self._incarnations()
        ready = [one.ready for one in living if one.ready]
        queues = {queue for each in ready for queue in each.queues}
        schedules = {name for each in ready for name in each.schedules} if ready else None
        boards = [(one.pid, one.board) for one in living]
        return member_info(self._member, self._config, boards, queues, schedules)

    async def _end_all(self) -> None:
        """After a fault of our own somebody may still be there; otherwise nobody is."""
        for one in self._incarnations():
            one.kill()
            await one.wait()

    async def _leave(self) -> None:
        """Sign off, and give back whatever may be left."""
        try:
            left = await asyncio.wait_for(self._engine.members.leave(self._member), LEAVE_S)
        except TimeoutError:
            log.warning("the engine did not let us sign off; our lease will run out")
            return
        except EngineError as error:
            log.warning("could not sign off, our lease will run out: %s", error)
            return
        if self._seats:
            self._left = left

    def _exit_code(self) -> int:
        if self._gave_up:
            return GAVE_UP
        if not self._seats:
            log.info("stopped")
            return FINISHED
        finished = sum(seat.finished for seat in self._seats)
        handed_back = self._left + sum(seat.handed_back for seat in self._seats)
        log.info("stopped: %d finished since the start, %d handed back", finished, handed_back)
        return HANDED_BACK if handed_back else FINISHED
