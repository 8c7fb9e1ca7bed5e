"""gunicorn-style preload: the app is used before the fork, then in parent and child alike."""

import asyncio
import os
import threading
from pathlib import Path

import msgspec
import pytest

from tests.integration.app.claimer import taken
from tidemill import Tidemill


@pytest.mark.parametrize("engine_mode", ["sqlite-file"], indirect=True)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_parent_and_children_enqueue_after_a_fork(app: Tidemill, tmp_path: Path) -> None:
    task = app.task(name="t")(lambda n: n)
    task.enqueue(0)
    children = []
    for number in (1, 2, 3):
        pid = os.fork()
        if pid == 0:  # the child must not run anything of the test session
            code = 1
            try:
                job = task.enqueue(number)
                code = 0 if job.info().args == (number,) else 2
            finally:
                os._exit(code)
        children.append(pid)
    task.enqueue(4)
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0, 0, 0]
    numbers = [msgspec.json.decode(job.body)[0][0] for job in asyncio.run(taken(app))]
    assert sorted(numbers) == [0, 1, 2, 3, 4]


@pytest.mark.row("A4")
@pytest.mark.parametrize("engine_mode", ["sqlite-file"], indirect=True)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_child_keeps_its_jobs_when_its_parent_closes(app: Tidemill) -> None:
    """The parent is not the last to close the file, whatever it remembers."""
    task = app.task(name="t")(lambda n: n)
    task.enqueue(0)
    (stored, say_stored), (closed, say_closed) = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            task.enqueue(1)
            os.write(say_stored, b".")
            os.read(closed, 1)
            task.enqueue(2)
            code = 0
        finally:
            os._exit(code)
    assert os.read(stored, 1) == b"."
    app.close()
    os.write(say_closed, b".")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    for end in (stored, say_stored, closed, say_closed):
        os.close(end)
    numbers = [msgspec.json.decode(job.body)[0][0] for job in asyncio.run(taken(app))]
    assert sorted(numbers) == [0, 1, 2]


@pytest.mark.row("A4")
@pytest.mark.parametrize("engine_mode", ["sqlite-file"], indirect=True)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_in_the_middle_of_a_write_locks_nobody_out(app: Tidemill) -> None:
    task = app.task(name="t")(lambda n: n)
    task.enqueue(0)
    over, written = threading.Event(), [0]

    def write() -> None:
        while not over.is_set():
            task.enqueue(-1)
            written[0] += 1

    writer = threading.Thread(target=write)
    writer.start()
    codes = []
    try:
        for number in range(1, 6):
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    task.enqueue(number)
                    code = 0
                finally:
                    os._exit(code)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    finally:
        over.set()
        writer.join()
    assert codes == [0] * 5
    found: list[int] = []
    while jobs := asyncio.run(taken(app)):
        found += [msgspec.json.decode(job.body)[0][0] for job in jobs]
    assert sorted(number for number in found if number >= 0) == [0, 1, 2, 3, 4, 5]
    assert found.count(-1) == written[0]
