"""Kills an operation at every moment, and checks what it left behind.

    python -m tests.integration.sqlite.kill FOLDER OPERATION...

A program of its own, because it forks: a process that has threads, as a test runner may, must not. The
stage is set once; each kill happens to a fresh copy of its files (the database and a WAL with commits
that were acknowledged but not yet folded into it), in a child that opens the engine, makes the call and
dies on the way. What a plain connection then finds is all of the operation or none of it, to the row.
The call is repeated, by an engine that was open all the time or by one that has to recover the file,
and answers as the contract says. Prints how often each was killed.
"""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.integration.sqlite.deaths import Death, Kind, spread
from tests.integration.sqlite.killed_operations import OPERATIONS
from tests.integration.sqlite.plain_file import Contents, beside, contents, file_url, is_sound, plain
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.testing.contract.faults.cut import Cut, Stage
from tidemill.testing.contract.fixtures import START, Clock, a_claimant

WITHIN = 6
"""Moments within statements, and as many within the commit."""
POSSIBLE: dict[Kind, tuple[bool, ...]] = {"answer": (True,), "instruction": (False, True)}
"""Whether it may have been applied; otherwise never: the last instructions come after the commit."""


@dataclass
class Play:
    """One operation, and what is known of it."""

    cut: Cut
    files: dict[str, bytes]
    """The files before it, by suffix."""
    before: Contents
    after: Contents
    again: Contents
    """After the repeat of a call that was applied."""
    answer: Any

    def put_files(self, path: Path) -> Path:
        for suffix, data in self.files.items():
            beside(path, suffix).write_bytes(data)
        return path


async def set_stage(folder: Path, name: str) -> Play:
    """Prepare, and play it once undisturbed to know how it ends."""
    path = folder / "stage.db"
    engine, clock = await connect(file_url(path)), Clock()
    cut = await OPERATIONS[name](Stage(engine, clock, await a_claimant(engine, clock)))
    files = {suffix: beside(path, suffix).read_bytes() for suffix in ("", "-wal")}
    with plain(path) as db:
        before = contents(db)
    await engine.close()
    play = Play(cut, files, before, {}, {}, None)
    twin = play.put_files(folder / "twin.db")
    engine = await connect(file_url(twin))
    play.answer = await cut.call(engine)
    with plain(twin) as db:
        play.after = contents(db)
        assert play.after != play.before
        assert await cut.call(engine) == cut.again(play.answer)
        play.again = contents(db)
    await engine.close()
    return play


def perform(play: Play, path: Path, death: Death, out: int) -> None:
    """In the child: open, and die in the middle of the call. Or live, and report what there was to count."""
    death.comes()

    async def main() -> None:
        engine = await connect(file_url(path))
        death.armed = True
        await play.cut.call(engine)

    asyncio.run(main())
    os.write(out, json.dumps([death.statements, death.instructions, death.commit_bytes]).encode())


def fork(play: Play, path: Path, death: Death) -> tuple[int, int, int]:
    """A child that waits for a byte before it performs: its pid, where to send that, where it reports."""
    start_out, start_in = os.pipe()
    report_out, report_in = os.pipe()
    pid = os.fork()
    if pid:
        os.close(start_out)
        os.close(report_in)
        return pid, start_in, report_out
    status = 1
    try:
        os.read(start_out, 1)
        perform(play, path, death, report_in)
        status = 0
    finally:
        os._exit(status)


def rehearse(play: Play, folder: Path) -> list[int]:
    """How many statements, instructions and bytes the operation has."""
    path = play.put_files(folder / "rehearsal.db")
    pid, start, report = fork(play, path, Death(path))
    os.write(start, b"!")
    _, status = os.waitpid(pid, 0)
    assert status == 0, f"the rehearsal ended with {status}"
    numbers: list[int] = json.loads(os.read(report, 1_000))
    os.close(start)
    os.close(report)
    assert all(number > 0 for number in numbers), numbers
    return numbers


def moments(statements: int, instructions: int, commit_bytes: int) -> Iterator[tuple[Kind, int]]:
    """When to die."""
    for at in range(1, statements + 1):
        yield "statement", at
    for at in spread(instructions, WITHIN):
        yield "instruction", at
    for at in spread(commit_bytes - 1, WITHIN):
        yield "byte", at
    yield "answer", 0


async def kill(play: Play, path: Path, death: Death, *, survivor: bool) -> None:
    """Kill once, check, and repeat the call."""
    play.put_files(path)
    pid, start, report = fork(play, path, death)
    engine = await connect(file_url(path)) if survivor else None
    os.write(start, b"!")
    _, status = os.waitpid(pid, 0)  # noqa: ASYNC222  (nothing else runs on the loop)
    os.close(start)
    os.close(report)
    expected = signal.SIGXFSZ if death.kind == "byte" else signal.SIGKILL
    assert os.WIFSIGNALED(status), f"it lived, and ended with {status}"
    assert os.WTERMSIG(status) == expected, status
    engine = engine or await connect(file_url(path))
    try:
        await check_and_repeat(play, path, engine, POSSIBLE.get(death.kind, (False,)))
    finally:
        await engine.close()
    for suffix in ("", "-wal", "-shm"):
        beside(path, suffix).unlink(missing_ok=True)


async def check_and_repeat(play: Play, path: Path, engine: Engine, possible: tuple[bool, ...]) -> None:
    """All of it is there or nothing; after a repeat it is there once."""
    with plain(path) as db:
        is_sound(db)
        found = contents(db)
        applied = found == play.after
        assert applied or found == play.before, "it was applied in part"
        assert applied in possible
        answer = await play.cut.call(engine)
        assert answer == (play.cut.again(play.answer) if applied else play.answer)
        is_sound(db)
        assert contents(db) == (play.again if applied else play.after)


def main(folder: Path, name: str) -> None:
    play = asyncio.run(set_stage(folder, name))
    kills = 0
    for kind, at in moments(*rehearse(play, folder)):
        path = folder / f"{kind}-{at}.db"
        try:
            asyncio.run(kill(play, path, Death(path, kind, at), survivor=kills % 2 == 1))
        except BaseException as error:
            error.add_note(f"{name}, killed at {kind} {at}, survivor: {kills % 2 == 1}")
            raise
        kills += 1
    print(name, kills)


if __name__ == "__main__":
    time.time_ns = lambda: START * 1_000  # fences follow the clock: a twin gets the same ones
    for operation in sys.argv[2:]:
        own = Path(sys.argv[1], operation)
        own.mkdir()
        main(own, operation)
