"""Starting our own programs: worker processes and runners.

Nothing is ever forked. The new process executes a fresh interpreter, which imports what it needs. It gets a
session of its own: a Ctrl-C in the terminal reaches the supervisor alone, and the process group can be killed
as a whole. It inherits one end of a channel, the read end of a pipe for `parent_death`, and whatever else it
needs. One environment variable names those descriptors. Everything else is sent by the channel, which no
other process can read.

**The kernel notifies us of the end, nothing polls**: a pidfd becomes readable when the process has ended. At
that moment the process is a zombie. Its id still belongs to it, so its process group can be killed without
hitting another process that got the id next. Only then is it reaped.

**All or nothing**: a start that fails halfway (mostly for want of descriptors) leaves neither a process nor a
descriptor behind, because the caller will try again, and again.

**`leave` ends a program that must end now.** The interpreter's own way out waits for every thread that a task
has left behind, and may wait for ever.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple, NoReturn

from tidemill.model.errors import BadInput
from tidemill.worker.member.messages import Channel
from tidemill.worker.member.parent_death import die_with_parent

DESCRIPTORS = "_TIDEMILL_DESCRIPTORS"
"""The environment variable that names them: channel, parent-death pipe, then the others."""
LAST_MESSAGES_S = 1.0
"""How long we wait for the last messages of an ended process, if something else keeps its channel open."""


class Program:
    """A process that we started, until it is reaped."""

    def __init__(self, process: subprocess.Popen[bytes], parent_pipe: int) -> None:
        self.pid = process.pid
        self._process = process
        self._parent_pipe = parent_pipe
        self._channel: Channel | None = None
        self._loop = asyncio.get_running_loop()
        self._exit: asyncio.Future[int] = self._loop.create_future()
        if hasattr(os, "pidfd_open"):
            self._pidfd = os.pidfd_open(self.pid)
            try:
                self._loop.add_reader(self._pidfd, self._ended)
            except BaseException:
                os.close(self._pidfd)
                raise
        else:
            self._waiter = self._loop.run_in_executor(None, process.wait)
            self._waiter.add_done_callback(lambda waited: self._reaped(waited.result()))

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        kind: Any,
        receive: Callable[[Any], None],
        *,
        descriptors: Sequence[int] = (),
    ) -> "Program":
        """Execute a program that calls `inherited`. `kind` is what it sends, `receive` is called with
        that."""
        with ExitStack() as undo:
            ours, theirs = socket.socketpair()
            undo.callback(ours.close)
            with theirs:
                read_end, write_end = os.pipe()
                undo.callback(os.close, write_end)
                try:
                    process = _execute(command, (theirs.fileno(), read_end, *descriptors))
                finally:
                    os.close(read_end)
            undo.callback(_kill_unwatched, process)
            program = cls(process, write_end)
            undo.pop_all()  # from here on it takes care of its own end, and of the pipe
            undo.callback(ours.close)
            undo.callback(program.kill)
            program._channel = await Channel.open(ours, kind, receive)
            undo.pop_all()
        return program

    @property
    def ended(self) -> bool:
        return self._exit.done()

    def send(self, message: object) -> bool:
        """As `Channel.send`."""
        return self._channel is not None and self._channel.send(message)

    def hang_up(self) -> None:
        """Close the channel: the process ends by itself when it has read the rest."""
        if self._channel is not None:
            self._channel.close()

    def deliver(self, number: signal.Signals) -> None:
        """Send a signal to the process alone."""
        self._send(os.kill, number)

    def kill(self) -> None:
        """Kill the process and everything in its group, at once."""
        self._send(os.killpg, signal.SIGKILL)

    async def wait(self) -> int:
        """Its exit code, negative for a signal, once everything that it sent has been received."""
        code = await asyncio.shield(self._exit)
        if self._channel is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._channel.gone.wait(), LAST_MESSAGES_S)
            self._channel.close()
        return code

    def _send(self, how: Callable[[int, int], None], number: signal.Signals) -> None:
        if not self._exit.done():  # not reaped: the number is still its own
            with suppress(ProcessLookupError):
                how(self.pid, number)

    def _ended(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)  # what its tasks have left behind
        self._reaped(self._process.wait())

    def _reaped(self, code: int) -> None:
        os.close(self._parent_pipe)
        if not self._exit.done():
            self._exit.set_result(code)


def tidemill(command: str) -> tuple[str, ...]:
    """One of our own commands, by the interpreter that runs us."""
    return (sys.executable, "-m", "tidemill", command)


def _execute(command: Sequence[str], descriptors: Sequence[int]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        pass_fds=descriptors,
        start_new_session=True,
        env={**os.environ, DESCRIPTORS: ",".join(map(str, descriptors))},
    )


def _kill_unwatched(process: subprocess.Popen[bytes]) -> None:
    """The process was started and cannot be watched: kill it, and wait the moment that takes."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def describe_exit(code: int) -> str:
    """How a process ended, for people."""
    if code >= 0:
        return f"its process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    return f"its process was killed by signal {-code} ({name})"


def reap_orphans(own: Collection[int]) -> int:
    """For a process that adopts orphans, as number 1 of a container does: reap those that are not `own`.

    A worker process that is killed leaves its runners behind. The kernel kills them, and this process has to
    reap them, or they stay as zombies. Returns how many were reaped."""
    reaped = 0
    with suppress(ChildProcessError):  # none at all
        while (found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if found.si_pid in own:  # the loop is about to be notified; the rest waits for the next time
                break
            os.waitpid(found.si_pid, os.WNOHANG)
            reaped += 1
    return reaped


class Inherited(NamedTuple):
    """What a program inherits from the process that started it."""

    channel: socket.socket
    others: tuple[int, ...]


def inherited() -> Inherited:
    """Called once by a program that was started here. What it starts itself inherits none of this."""
    named = os.environ.pop(DESCRIPTORS, "")
    if not named:
        raise BadInput("this command is for Tidemill's own processes: start `tidemill worker` instead")
    channel, parent_pipe, *others = map(int, named.split(","))
    for fd in (channel, *others):
        os.set_inheritable(fd, False)
    die_with_parent(parent_pipe)
    return Inherited(socket.socket(fileno=channel), tuple(others))


def leave(code: int) -> NoReturn:
    """End a program of ours, whatever still runs in it."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # a task may have closed or replaced it
            stream.flush()
    os._exit(code)
