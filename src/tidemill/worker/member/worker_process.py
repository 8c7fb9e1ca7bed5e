"""One worker process as its supervisor sees it: a claimant, from its start to its end.

An incarnation is never used twice. What starts after a death is a new process with a new claimant id and an
empty board, so that nothing that the dead one still had under way, at the engine or in a socket, can be
mistaken for the new one's.

A process that has said its last word ends at once, by its own doing. Should it not, it is killed: until its
end is known nobody takes its seat.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence

from tidemill.engine.boot import boot_ns
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Fence
from tidemill.model.member import ClaimantHeartbeat
from tidemill.worker.config import WorkerConfig
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
    Ready,
    StopAsked,
)
from tidemill.worker.member.spawn import Program, tidemill
from tidemill.worker.process.held_table import HeldRow, HeldTable

COMMAND = tidemill("_child")
END_S = 5.0
"""How long one may take to end after its last word."""

log = logging.getLogger("tidemill.worker")


class WorkerProcess:
    """One worker process. See `tidemill.worker.member.heartbeat.Charge` for what heartbeats ask of it."""

    def __init__(
        self,
        config: WorkerConfig,
        *,
        member: bytes,
        takes_suspects: bool,
        is_ready: Callable[[], None] = lambda: None,
    ) -> None:
        """`is_ready`: called when it has said so. It claims nothing before the next heartbeat."""
        self.claimant = os.urandom(16)
        self.board = HeldTable.create(config.board_capacity)
        self.ready: Ready | None = None
        self.ready_ns = 0
        """When it said so, on the boot clock; 0: never."""
        self.drained: Drained | None = None
        self.unfit = ""
        """Why it cannot work at all, if it said so."""
        self.leaving = ""
        """Why it left by its own decision, if it did."""
        self.stuck: frozenset[Fence] = frozenset()
        """The runs for which it was killed: past their deadline, and not to be stopped otherwise."""
        self.killed = False
        """By us: no task is to blame."""
        self._is_ready = is_ready
        self._program: Program | None = None
        self._closed = False
        self._overdue: asyncio.TimerHandle | None = None
        self._hello = Hello(
            config=config,
            member=member.hex(),
            claimant=self.claimant.hex(),
            capacity=self.board.capacity,
            takes_suspects=takes_suspects,
        )

    async def start(self) -> None:
        """Execute it. It says `Ready` when it has loaded the app."""
        self._program = await Program.start(COMMAND, FromWorker, self._hear, descriptors=(self.board.fd,))
        self._program.send(self._hello)

    @property
    def pid(self) -> int:
        return 0 if self._program is None else self._program.pid

    async def wait(self) -> int:
        """Its exit code, once everything that it said has been heard."""
        assert self._program is not None
        return await self._program.wait()

    def rows(self) -> list[HeldRow]:
        """The runs that it has, or had when it died."""
        return self.board.rows()

    def drain(self, timeout_s: float | None) -> None:
        """Finish, take no more. One that is still loading has nothing to finish."""
        if self.ready is None and not self.rows():
            self.kill()
        else:
            self._say(Drain(timeout_s))

    def hurry(self) -> None:
        """Give back what still runs."""
        self._say(Hurry())

    def kill(self, stuck: frozenset[Fence] = frozenset()) -> None:
        """At once, with everything it has started."""
        self.killed, self.stuck = True, stuck
        if self._program is not None:
            self._program.kill()

    def close(self) -> None:
        """It has been buried."""
        self._closed = True
        if self._overdue is not None:
            self._overdue.cancel()
        self.board.close()

    # For heartbeats

    def heartbeat(self) -> ClaimantHeartbeat:
        return self.board.heartbeat(self.claimant)

    def heartbeat_answered(self, sent_ns: int | None) -> bool:
        if self._closed:
            return False
        if sent_ns is not None:
            self.board.heartbeat_answered(sent_ns)
        return self._say(HeartbeatAnswered(ok=sent_ns is not None))

    def lost(self, fences: Sequence[Fence]) -> bool:
        return self._say(Lost(list(fences)))

    def asked(self, runs: Sequence[tuple[JobId, Fence]]) -> bool:
        return self._say(StopAsked([(job_id.hex(), fence) for job_id, fence in runs]))

    def introduce(self) -> bool:
        return self._say(PublishAgain())

    def _say(self, message: object) -> bool:
        return self._program is not None and self._program.send(message)

    def _hear(self, message: FromWorker) -> None:
        match message:
            case Ready():
                self.ready, self.ready_ns = message, boot_ns()
                log.info("worker process %d is ready", self.pid)
                self._is_ready()
                return
            case Drained():
                self.drained = message
            case CannotLoad(why):
                self.unfit = why
            case Leaving(why):
                self.leaving = why
        self._expect_its_end()

    def _expect_its_end(self) -> None:
        """That was its last word."""
        if self._overdue is None:
            self._overdue = asyncio.get_running_loop().call_later(END_S, self._insist_on_its_end)

    def _insist_on_its_end(self) -> None:
        if self._program is not None and not self._program.ended:
            log.warning("worker process %d has said its last word and does not end: killing it", self.pid)
            self._program.kill()
