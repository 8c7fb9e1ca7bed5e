"""One worker process as its supervisor sees it: a claimant, from its start to its end.

Each start makes a new process with a new claimant id and an empty held table. So nothing that a dead process
still had under way, at the engine or in a socket, can be taken for something of the new one.

A process that has sent its last message ends at once by itself. If it does not, it is killed: no new process
starts before its end is known.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence

from tidemill.engine.boot import boot_ns
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Fence
from tidemill.model.member import ClaimantHeartbeat
from tidemill.model.stats.batch import StatsRow
from tidemill.worker.config import WorkerConfig
from tidemill.worker.member.info import memory_of
from tidemill.worker.member.messages import (
    CannotLoad,
    Drain,
    Drained,
    FromWorker,
    HeartbeatAnswered,
    Hello,
    Hurry,
    Leaving,
    Lost,
    PublishAgain,
    Published,
    Ready,
    RunStatistics,
    StopRequested,
)
from tidemill.worker.member.spawn import Program, tidemill
from tidemill.worker.process.held_table import HeldRow, HeldTable

COMMAND = tidemill("_child")
END_S = 5.0
"""How long a process may take to end after its last message."""

log = logging.getLogger("tidemill.worker")


class WorkerProcess:
    """One worker process. `tidemill.worker.member.heartbeat.LocalClaimant` is what heartbeats need of it."""

    def __init__(
        self,
        config: WorkerConfig,
        *,
        member: bytes,
        takes_suspects: bool,
        is_ready: Callable[[], None] = lambda: None,
        has_published: Callable[[], None] = lambda: None,
        statistics: Callable[[Sequence[StatsRow]], None] = lambda _: None,
    ) -> None:
        """`is_ready` is called when the process says that it is. It claims nothing before the next
        heartbeat. `has_published`: when it says that the engine knows its tasks.
        `statistics` gets what it counted."""
        self.claimant = os.urandom(16)
        self.held_table = HeldTable.create(config.held_capacity)
        self.ready: Ready | None = None
        self.ready_ns = 0
        """When the process said so, on the boot clock; 0: never."""
        self.memory_at_ready: int | None = None
        """Its resident bytes then."""
        self.drained: Drained | None = None
        self.cannot_load = ""
        """Why it cannot work at all, if it said so."""
        self.leaving = ""
        """Why it left by its own decision, if it did."""
        self.stuck: frozenset[Fence] = frozenset()
        """The runs for which it was killed: past their deadline, and not to be stopped otherwise."""
        self.killed = False
        """By us: no task is to blame."""
        self._is_ready = is_ready
        self._has_published = has_published
        self._statistics = statistics
        self._program: Program | None = None
        self._closed = False
        self._overdue: asyncio.TimerHandle | None = None
        self._hello = Hello(
            config=config,
            member=member.hex(),
            claimant=self.claimant.hex(),
            capacity=self.held_table.capacity,
            takes_suspects=takes_suspects,
        )

    async def start(self) -> None:
        """Execute the process. It sends `Ready` when it has loaded the app."""
        self._program = await Program.start(
            COMMAND, FromWorker, self._receive, descriptors=(self.held_table.fd,)
        )
        self._program.send(self._hello)

    @property
    def pid(self) -> int:
        return 0 if self._program is None else self._program.pid

    async def wait(self) -> int:
        """Its exit code, once everything that it sent has been received."""
        assert self._program is not None
        return await self._program.wait()

    def rows(self) -> list[HeldRow]:
        """The runs that it has, or had when it died."""
        return self.held_table.rows()

    def drain(self, timeout_s: float | None) -> None:
        """Claim no more and finish. A process that is still loading has nothing to finish, and is killed."""
        if self.ready is None and not self.rows():
            self.kill()
        else:
            self._send(Drain(timeout_s))

    def hurry(self) -> None:
        """The deadline of the drain is now: release what still runs."""
        self._send(Hurry())

    def kill(self, stuck: frozenset[Fence] = frozenset()) -> None:
        """Kill the process at once, with everything that it has started."""
        self.killed, self.stuck = True, stuck
        if self._program is not None:
            self._program.kill()

    def close(self) -> None:
        """Its end was reported: free what is left of it."""
        self._closed = True
        if self._overdue is not None:
            self._overdue.cancel()
        self.held_table.close()

    # For heartbeats

    def heartbeat(self) -> ClaimantHeartbeat:
        return self.held_table.heartbeat(self.claimant)

    def heartbeat_answered(self, sent_ns: int | None, options: int = 0) -> bool:
        if self._closed:
            return False
        if sent_ns is not None:
            self.held_table.heartbeat_answered(sent_ns)
        return self._send(HeartbeatAnswered(sent_ns is not None, options))

    def lost(self, fences: Sequence[Fence]) -> bool:
        return self._send(Lost(list(fences)))

    def stop_requested(self, runs: Sequence[tuple[JobId, Fence]]) -> bool:
        return self._send(StopRequested([(job_id.hex(), fence) for job_id, fence in runs]))

    def publish_again(self) -> bool:
        return self._send(PublishAgain())

    def _send(self, message: object) -> bool:
        return self._program is not None and self._program.send(message)

    def _receive(self, message: FromWorker) -> None:
        match message:
            case Ready():
                self.ready, self.ready_ns = message, boot_ns()
                self.memory_at_ready = memory_of(self.pid)
                log.info("worker process %d is ready", self.pid)
                self._is_ready()
                return
            case Published():
                self._has_published()
                return
            case RunStatistics(rows):
                self._statistics(rows)
                return
            case Drained():
                self.drained = message
            case CannotLoad(why):
                self.cannot_load = why
            case Leaving(why):
                self.leaving = why
        self._expect_its_end()

    def _expect_its_end(self) -> None:
        """It has sent its last message: kill it if it does not end."""
        if self._overdue is None:
            self._overdue = asyncio.get_running_loop().call_later(END_S, self._kill_overdue)

    def _kill_overdue(self) -> None:
        if self._program is not None and not self._program.ended:
            log.warning("worker process %d has sent its last message and does not end: killing it", self.pid)
            self._program.kill()
