"""A server that runs under the locale of its machine orders strings otherwise than its own zsets do."""

import asyncio
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.fixtures import or_skip
from tests.servers.postgres import NoServer
from tests.servers.redis import RedisServer
from tidemill.engine.registry import connect as open_engine
from tidemill.model.queues.queue import Limit, QueueOptions
from tidemill.testing.contract.fixtures import Claimant, Clock, a_job, configure, ids_of, listed

LOCALE = "en_US.UTF-8"
NAMES = ("a", "B", "a-b", "ab", "A_b", "Z", "z.z", "zz")
"""Ordered by bytes the capitals come first, in this locale they stand among the others."""


def in_that_locale(folder: Path) -> RedisServer:
    """A server under a locale that is made for it."""
    program = shutil.which("localedef")
    if program is None or not Path("/usr/share/i18n/locales/en_US").exists():
        raise NoServer(
            "there are no locales to choose from; install them with: "
            "apt-get install --no-install-recommends locales"
        )
    made = [program, "-i", "en_US", "-f", "UTF-8", str(folder / LOCALE)]
    subprocess.run(made, check=True, timeout=120, stdin=subprocess.DEVNULL, capture_output=True)
    return RedisServer(environment={"LOCPATH": str(folder), "LC_ALL": LOCALE}).start()


@pytest.fixture(scope="module")
def local_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = or_skip(lambda: in_that_locale(tmp_path_factory.mktemp("locale")))
    assert server.command("EVAL", "return 'a' < 'B' and 1 or 0", "0") == b":1\r\n", "the locale is in force"
    yield server
    server.close()


@pytest.fixture
def url(local_server: RedisServer, engine_mode: str) -> str:
    local_server.command("FLUSHALL")
    return local_server.url()


async def test_lanes_of_a_full_task_are_passed_over(url: str, clock: Clock) -> None:
    engine = await open_engine(url)
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
    full = QueueOptions(fair_by="key", per_task={"a": Limit(concurrency=1)})
    await configure(engine, "q", full, now=clock.now)
    jobs = [a_job(task=task, key=key) for task in ("a", "B", "a-b") for key in NAMES for _ in range(2)]
    await engine.jobs.enqueue(jobs, now=clock.now)
    async with asyncio.timeout(10):
        taken = await claimant.take(most=100)
    assert sorted(job.task for job in taken) == ["B"] * 16 + ["a"] + ["a-b"] * 16
    await engine.close()


async def test_queues_take_turns_and_no_page_is_lost(url: str, clock: Clock) -> None:
    engine = await open_engine(url)
    claimant = Claimant(engine, clock)
    await claimant.heartbeat()
    jobs = [a_job(queue=queue, delay=delay) for queue in NAMES for delay in (0, 0, 9, 9, 9)]
    await engine.jobs.enqueue(jobs, now=clock.now)
    found = ids_of(await listed(engine, limit=3))
    assert sorted(found) == sorted(ids_of(jobs))
    assert [each.queue for each in await engine.inspect.counts(now=clock.now)] == sorted(NAMES)
    queues = [(await claimant.take(*NAMES, most=1))[0].queue for _ in NAMES]
    assert queues == sorted(NAMES)
    await engine.close()
