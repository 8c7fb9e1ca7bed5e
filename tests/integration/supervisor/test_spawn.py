"""Processes that were started: they speak, they end, and they never outlive whoever started them."""

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.integration.supervisor.processes import is_gone, is_there, until
from tidemill.model.errors import BadInput
from tidemill.worker.member import spawn
from tidemill.worker.member.messages import Channel
from tidemill.worker.member.spawn import DESCRIPTORS, Program, describe_exit, inherited
from tidemill.worker.process.held_table import HeldTable

PATIENCE_S = 30


class Said(msgspec.Struct, tag="said"):
    text: str


class Started:
    """Programs of one test, and what they said."""

    def __init__(self) -> None:
        self.received: asyncio.Queue[Said] = asyncio.Queue()
        self.programs: list[Program] = []

    async def start(self, code: str, **options: Any) -> Program:
        command = (sys.executable, "-c", PREAMBLE + code)
        program = await Program.start(command, Said, self.received.put_nowait, **options)
        self.programs.append(program)
        return program

    async def receive(self) -> str:
        return (await asyncio.wait_for(self.received.get(), PATIENCE_S)).text


@pytest.fixture
async def started() -> AsyncIterator[Started]:
    before = set(os.listdir("/proc/self/fd"))
    started = Started()
    yield started
    for program in started.programs:
        program.kill()
        await program.wait()
    await asyncio.sleep(0)
    assert set(os.listdir("/proc/self/fd")) - before == set(), "a descriptor was left open"


PREAMBLE = """
import os, signal, subprocess, sys, time
import msgspec
from tidemill.worker.member.messages import encode_line
from tidemill.worker.member.spawn import inherited
end, others = inherited()
class Said(msgspec.Struct, tag="said"):
    text: str
def say(text):
    end.sendall(encode_line(Said(str(text))))
"""
HOLDS_THE_GIL = """
import re
re.match(r"(a+)+$", "a" * 60 + "b")
"""


async def test_last_messages_are_received_before_the_end_is_known(started: Started) -> None:
    program = await started.start("for n in range(100): say(n)\nos._exit(3)")
    assert await asyncio.wait_for(program.wait(), PATIENCE_S) == 3
    assert [started.received.get_nowait().text for _ in range(100)] == [str(n) for n in range(100)]
    assert program.ended
    program.kill()  # too late, and harmless


async def test_it_receives_and_answers(started: Started) -> None:
    program = await started.start("say(end.recv(100))\n")
    assert program.send(Said("hello"))
    assert "hello" in await started.receive()
    assert await program.wait() == 0
    assert not program.send(Said("anybody?"))


async def test_it_inherits_what_it_is_given_and_passes_nothing_on(started: Started) -> None:
    held_table = HeldTable.create(2)
    program = await started.start(
        "from tidemill.worker.process.held_table import HeldTable\n"
        "HeldTable.attach(others[0], 2).answered(5)\n"
        "say(subprocess.run(['ls', '-l', '/proc/self/fd'], close_fds=False, "
        "capture_output=True, text=True).stdout)\n"
        f"say({DESCRIPTORS!r} in os.environ)",
        descriptors=(held_table.fd,),
    )
    listing = await started.receive()
    assert "memfd" not in listing
    assert "socket" not in listing
    assert await started.receive() == "False"
    await program.wait()
    assert held_table.heartbeat(b"").answered_through == 5
    held_table.close()


async def test_its_session_is_its_own(started: Started) -> None:
    program = await started.start("say(f'{os.getpid()} {os.getsid(0)} {os.getpgrp()}')")
    assert await started.receive() == f"{program.pid} {program.pid} {program.pid}"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
async def test_a_death_by_signal_is_named(started: Started, number: signal.Signals) -> None:
    program = await started.start("say('up')\nsignal.pause()")
    await started.receive()
    program.deliver(number)
    code = await asyncio.wait_for(program.wait(), PATIENCE_S)
    assert code == -number
    assert describe_exit(code) == f"its process was killed by signal {number.value} ({number.name})"
    assert describe_exit(3) == "its process ended with exit code 3"
    assert not is_there(program.pid), "not even a zombie is left"


async def test_what_it_has_started_ends_with_it(started: Started) -> None:
    program = await started.start("say(subprocess.Popen(['sleep', '1000']).pid)\nos._exit(1)")
    sleeper = int(await started.receive())
    await program.wait()
    await until(lambda: is_gone(sleeper))


async def test_hanging_up_ends_it_in_good_order(started: Started) -> None:
    program = await started.start("say('up')\nwhile end.recv(100): pass\nos._exit(7)")
    await started.receive()
    program.hang_up()
    assert await asyncio.wait_for(program.wait(), PATIENCE_S) == 7


@pytest.mark.parametrize("what", ["os.pidfd_open", "add_reader", "Channel.open"])
async def test_a_start_that_fails_halfway_leaves_nothing(
    started: Started, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Neither a process, nor a zombie, nor a descriptor."""
    born: list[int] = []
    execute = spawn._execute

    def execute_and_note(*args: Any) -> "subprocess.Popen[bytes]":
        process = execute(*args)
        born.append(process.pid)
        return process

    def refuse(*_: Any) -> Any:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(spawn, "_execute", execute_and_note)
    with monkeypatch.context() as patch:
        match what:
            case "os.pidfd_open":
                patch.setattr(os, "pidfd_open", refuse)
            case "add_reader":
                patch.setattr(asyncio.get_running_loop(), "add_reader", refuse)
            case _:
                patch.setattr(Channel, "open", refuse)
        with pytest.raises(OSError, match="Too many open files"):
            await started.start("time.sleep(1000)")
    (pid,) = born
    await until(lambda: not is_there(pid))


def test_our_own_commands_are_not_for_people() -> None:
    with pytest.raises(BadInput, match="start `tidemill worker` instead"):
        inherited()


ADOPTS = """
import asyncio, ctypes, os, subprocess, sys
from tidemill.worker.member.spawn import reap_orphans

ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: orphans come to us, as to number 1
own = subprocess.Popen(("sleep", "1000"))
subprocess.run(("sh", "-c", "sleep 0.2 & sleep 0.2 & true"))
reaped = 0
while reaped < 2:
    reaped += reap_orphans([own.pid])
own.kill()
os.waitid(os.P_PID, own.pid, os.WEXITED | os.WNOWAIT)
print(reaped, reap_orphans([own.pid]), own.wait(), reap_orphans([]))
"""


async def test_a_process_that_adopts_orphans_reaps_them() -> None:
    command = (sys.executable, "-c", ADOPTS)
    run = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=PATIENCE_S)
    assert run.stdout == "2 0 -9 0\n", run.stderr


STARTS_AND_WAITS = """
import asyncio, os, sys
from tidemill.worker.member.spawn import Program

async def main():
    program = await Program.start((sys.executable, "-c", sys.argv[1]), bytes, lambda message: None)
    print(program.pid, flush=True)
    await asyncio.sleep(1000)

asyncio.run(main())
"""
ORPHANS = {
    "waits": "open(marker, 'w').close(); signal.pause()",
    "holds the GIL": "open(marker, 'w').close()" + HOLDS_THE_GIL,
    "ignores every signal": "\n".join(
        (
            "for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:",
            "    signal.signal(number, signal.SIG_IGN)",
            "open(marker, 'w').close()",
            "while True: time.sleep(1)",
        )
    ),
    "is stopped": "open(marker, 'w').close(); os.kill(os.getpid(), signal.SIGSTOP)",
    "has children": "subprocess.Popen(['sleep', '1000']); open(marker, 'w').close(); time.sleep(1000)",
}


@pytest.mark.parametrize("kind", ORPHANS)
async def test_nothing_outlives_a_starter_that_was_killed(kind: str, tmp_path: Path) -> None:
    """Whatever it does, and with everything in its group."""
    marker = tmp_path / "up"
    code = PREAMBLE + f"marker = {str(marker)!r}\n" + ORPHANS[kind]
    starter = subprocess.Popen(  # noqa: ASYNC220  (returns at once)
        (sys.executable, "-c", STARTS_AND_WAITS, code), stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout is not None
    with starter, starter.stdout:
        pid = int(await asyncio.to_thread(starter.stdout.readline))
        await until(marker.exists)
        assert not is_gone(pid)
        starter.kill()
        starter.wait(PATIENCE_S)
        await until(lambda: _group_is_gone(pid))


def _group_is_gone(leader: int) -> bool:
    try:
        os.killpg(leader, 0)
    except ProcessLookupError:
        return True
    return all(is_gone(int(pid)) for pid in os.listdir("/proc") if pid.isdigit() and _group(pid) == leader)


def _group(pid: str) -> int | None:
    try:
        return os.getpgid(int(pid))
    except ProcessLookupError:
        return None


@pytest.mark.parametrize("name", ["_child", "_runner"])
def test_a_process_of_ours_does_without_the_command_line(name: str) -> None:
    """And one whose parent is gone before the first message says so in a line."""
    ours, theirs = socket.socketpair()
    held, parent_pipe = os.pipe()
    ours.close()
    passed = (theirs.fileno(), held, os.dup(held))  # the third stands for a table that nobody gets to read
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tidemill", name],
        env={**os.environ, DESCRIPTORS: ",".join(map(str, passed))},
        pass_fds=passed,
        start_new_session=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    theirs.close()
    for fd in (*passed[1:], parent_pipe):
        os.close(fd)
    lines = ran.stderr.splitlines()
    said = [line for line in lines if not line.startswith("import time:")]
    assert said == ["tidemill: the channel ended before its first message"]
    imported = {line.split("|")[-1].strip() for line in lines}
    assert "tidemill.app.loading" in imported
    assert not {"click", "rich", "tidemill.cli"} & imported
