"""Engines of one process share the threads and connections of their file."""

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.integration.sqlite.children import ROOT
from tests.integration.sqlite.opened import connect
from tests.integration.sqlite.plain_file import file_url
from tests.integration.supervisor.processes import until
from tidemill import Tidemill
from tidemill.model.errors import EngineClosed, NotOurs
from tidemill.testing.contract.fixtures import Clock, a_job, created, some_jobs

BEFORE: set[threading.Thread] = set()
"""The threads that other tests of this process have left: an app may stay open until the process ends."""


@pytest.fixture(autouse=True)
def _threads_before() -> None:
    BEFORE.clear()
    BEFORE.update(threading.enumerate())


def threads(kind: str) -> int:
    """Of one kind, begun since the test began."""
    begun = set(threading.enumerate()) - BEFORE
    return sum(thread.name.startswith(f"tidemill-{kind} ") for thread in begun)


def connections(path: Path) -> int:
    """How many times this process has the file open."""
    links = (Path(link) for link in Path("/proc/self/fd").iterdir())
    return sum(os.path.realpath(link) == os.path.realpath(path) for link in links)


async def test_a_program_has_one_writer_and_one_reader(path: Path) -> None:
    """With an embedded worker, enqueues from threads and a block on the loop: three engines, one for each."""
    app = Tidemill(file_url(path))

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async with app.worker(slots=4), app:
        jobs = [await double.aenqueue(number) for number in range(5)]
        jobs += await asyncio.gather(*(asyncio.to_thread(double.enqueue, number) for number in range(5)))
        assert [await job.aresult(timeout=30) for job in jobs] == [2 * number for number in range(5)] * 2
        assert (threads("writer"), threads("reader"), connections(path)) == (1, 1, 2)
    await app.aclose()
    assert (threads("writer"), threads("reader"), connections(path)) == (0, 0, 0)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
async def test_the_last_one_closes_the_file(path: Path, clock: Clock, order: tuple[int, ...]) -> None:
    engines = [await connect(file_url(path)) for _ in range(3)]
    for number in order:
        assert (threads("writer"), connections(path)) == (1, 2)
        assert created(await engines[number].jobs.enqueue([a_job()], now=clock.now)) == [True]
        await engines[number].close()
        with pytest.raises(EngineClosed):
            await engines[number].inspect.counts(now=clock.now)
    assert (threads("writer"), connections(path)) == (0, 0)
    again = await connect(file_url(path))
    assert (await again.inspect.counts(now=clock.now))[0].ready == 3


async def test_one_that_closes_finishes_its_calls(path: Path, clock: Clock) -> None:
    """Although the others keep the file open."""
    closing, other = await connect(file_url(path)), await connect(file_url(path))
    calls = [asyncio.ensure_future(closing.jobs.enqueue([job], now=clock.now)) for job in some_jobs(20)]
    reading = asyncio.ensure_future(closing.inspect.counts(now=clock.now))
    await asyncio.sleep(0)  # they have been made
    await closing.close()
    (queue,) = await other.inspect.counts(now=clock.now)
    assert queue.ready == 20
    assert [created(answer) for answer in await asyncio.gather(*calls)] == [[True]] * 20
    await reading


async def test_each_url_keeps_its_own_name(path: Path, tmp_path: Path) -> None:
    """The same file through a symbolic link is the same file."""
    link = tmp_path / "link.db"
    link.symlink_to(path)
    first, second = await connect(file_url(path)), await connect(file_url(link))
    assert (threads("writer"), connections(path)) == (1, 2)
    assert [first.name, second.name] == [f"sqlite:///{path}", f"sqlite:///{link}"]


async def test_other_options_keep_their_own_threads(path: Path, clock: Clock) -> None:
    """A wait for the lock and a durability are promises, which one connection can keep in one way only."""
    url = file_url(path)
    join = "&" if "?" in url else "?"
    first, second = await connect(url), await connect(f"{url}{join}lock_timeout=7")
    assert (threads("writer"), connections(path)) == (2, 4)
    await first.jobs.enqueue([a_job()], now=clock.now)
    assert (await second.inspect.counts(now=clock.now))[0].ready == 1
    await first.close()
    assert created(await second.jobs.enqueue([a_job()], now=clock.now)) == [True]


async def test_another_namespace_is_refused_while_the_file_is_open(path: Path, clock: Clock) -> None:
    engine = await connect(file_url(path), namespace="ours")
    with pytest.raises(NotOurs, match="belongs to the namespace 'ours', not 'theirs'"):
        await connect(file_url(path), namespace="theirs")
    assert created(await engine.jobs.enqueue([a_job()], now=clock.now)) == [True]
    await engine.close()
    assert (threads("writer"), connections(path)) == (0, 0)


async def test_a_file_that_was_replaced_is_another_file(path: Path, clock: Clock) -> None:
    before = await connect(file_url(path))
    await before.jobs.enqueue([a_job()], now=clock.now)
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()
    after = await connect(file_url(path))
    assert await after.inspect.counts(now=clock.now) == []


async def test_an_opening_that_was_given_up_holds_nothing(path: Path) -> None:
    opening = asyncio.ensure_future(connect(file_url(path)))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await until(lambda: path.exists() and not (threads("writer") or connections(path)))


FORKS = """
import os, sys, threading
from tidemill import Tidemill

app = Tidemill(sys.argv[1])

@app.task
def nothing() -> None: ...

def writers():
    return sum(thread.name.startswith("tidemill-writer ") for thread in threading.enumerate())

nothing.enqueue()
pid = os.fork()
if pid == 0:
    assert writers() == 0
    others = [threading.Thread(target=nothing.enqueue) for _ in range(3)]
    for one in others: one.start()
    for one in others: one.join()
    assert writers() == 1
    app.close()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
nothing.enqueue()
assert writers() == 1
app.close()
assert writers() == 0
"""


def test_a_child_of_a_fork_has_its_own(path: Path) -> None:
    command = (sys.executable, "-c", FORKS, file_url(path))
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
