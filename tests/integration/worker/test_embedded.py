"""A worker inside another program."""

import asyncio
import os
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from tidemill.engine.boot import boot_ns
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState, NewJob
from tidemill.model.time import HOUR
from tidemill.model.view import CONTROLLER_LEASE
from tidemill.task.catalogue import publish
from tidemill.task.definition import Definition
from tidemill.task.registry import Registry
from tidemill.worker.config import WorkerConfig
from tidemill.worker.process.embedded import EmbeddedWorker
from tidemill.worker.process.embedded_heartbeat import EmbeddedHeartbeat
from tidemill.worker.process.held_table import HeldTable


@pytest.fixture(params=["sqlite-file", "sqlite-memory"])
def engine_mode(request: pytest.FixtureRequest) -> str:
    mode: str = request.param
    return mode


@pytest.fixture
def engine_url(engine_mode: str, tmp_path: Path) -> str:
    if engine_mode == "sqlite-memory":
        return f"sqlite://?name={new_id().hex()}"
    return f"sqlite:///{tmp_path}/tidemill.db?durability=off"


def config(url: str, **options: float) -> WorkerConfig:
    return WorkerConfig(url=url, **{"heartbeat_s": 0.2, "lease_s": 1.0, "sweep_s": 0.2, **options})  # type: ignore[arg-type]


def a_job(task: str) -> NewJob:
    return NewJob(id=new_id(), task=task, queue="default")


async def state_of(engine: Engine, job: NewJob) -> JobState:
    (found,) = await engine.inspect.get([job.id])
    assert found is not None
    return found.state


@pytest.mark.every_engine
async def test_it_works_within_its_block_and_signs_off(engine: Engine, engine_url: str) -> None:
    async def works() -> str:
        return "done"

    registry = Registry()
    registry.add(Definition(works, name="works"))
    job = a_job("works")
    await engine.jobs.enqueue([job])
    async with EmbeddedWorker(registry, config(engine_url)) as worker:
        await worker.moments.reached("settled")
        (member,) = await engine.members.list()
        assert member.info.id == worker.member
        assert member.info.queues == ("default",)
    assert await state_of(engine, job) is JobState.COMPLETED
    assert await engine.members.list() == []
    assert not [thread for thread in threading.enumerate() if thread.name == "tidemill-heartbeats"]


async def test_it_hands_over_how_long_jobs_waited_and_ran(engine: Engine, engine_url: str) -> None:
    async def works() -> None: ...

    async def counted() -> int:
        now = await engine.now()
        found = await engine.inspect.stats(since=now - HOUR, until=now + 1)
        return sum(point.run.count for series in found for point in series.points)

    registry = Registry()
    registry.add(Definition(works, name="works"))
    await engine.jobs.enqueue([a_job("works")])
    async with EmbeddedWorker(registry, config(engine_url)) as worker:
        await worker.moments.reached("settled")
        number = 0
        while number < 1:
            await asyncio.sleep(0.02)
            number = await counted()
        await engine.jobs.enqueue([a_job("works") for _ in range(3)])
        await worker.moments.reached("settled", 4)
    assert await counted() == 4


async def test_it_stands_for_controller_once_its_tasks_are_published(
    engine: Engine, engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first promotion as controller may bury jobs that have expired: their handlers must be known."""
    go_on = asyncio.Event()

    async def publish_late(engine: Engine, registry: Registry, *, source: str, began: int) -> None:
        await go_on.wait()
        await publish(engine, registry, source=source, began=began)

    async def heartbeats() -> list[int]:
        return [member.heartbeat_at for member in await engine.members.list()]

    monkeypatch.setattr("tidemill.worker.worker.publish", publish_late)
    async with EmbeddedWorker(Registry(), config(engine_url)):
        seen: set[int] = set()
        while len(seen) < 3:  # a candidate would have stood by the second
            seen.update(await heartbeats())
            await asyncio.sleep(0.01)
        assert await engine.leases.list() == []
        go_on.set()
        elected: list[str] = []
        while elected != [CONTROLLER_LEASE]:
            await asyncio.sleep(0.01)
            elected = [lease.name for lease in await engine.leases.list()]


@pytest.mark.row("A12")
async def test_leaving_the_block_lets_finish_what_runs(engine: Engine, engine_url: str) -> None:
    started = asyncio.Event()

    async def works() -> str:
        started.set()
        for _ in range(20):
            await asyncio.sleep(0)
        return "done"

    registry = Registry()
    registry.add(Definition(works, name="works"))
    job = a_job("works")
    await engine.jobs.enqueue([job])
    async with EmbeddedWorker(registry, config(engine_url)) as worker:
        await started.wait()
    assert worker.drained is not None
    assert (worker.drained.finished, worker.drained.released) == (1, 0)
    assert await state_of(engine, job) is JobState.COMPLETED


@pytest.mark.row("B7")
async def test_what_does_not_finish_in_time_is_handed_back(engine: Engine, engine_url: str) -> None:
    started = asyncio.Event()

    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    registry = Registry()
    registry.add(Definition(endless, name="endless"))
    job = a_job("endless")
    await engine.jobs.enqueue([job])
    async with EmbeddedWorker(registry, config(engine_url, shutdown_timeout_s=0.02)) as worker:
        await started.wait()
    assert worker.drained is not None
    assert worker.drained.released == 1
    assert await state_of(engine, job) is JobState.READY


@pytest.mark.every_engine
async def test_cancel_reaches_it_by_its_heartbeats(engine: Engine, engine_url: str) -> None:
    started = asyncio.Event()

    async def endless() -> None:
        started.set()
        await asyncio.Event().wait()

    registry = Registry()
    registry.add(Definition(endless, name="endless"))
    job = a_job("endless")
    async with EmbeddedWorker(registry, config(engine_url, cancel_grace_s=0.01)) as worker:
        await engine.jobs.enqueue([job])
        await started.wait()
        await engine.jobs.cancel([job.id])
        await worker.moments.reached("settled")
    assert await state_of(engine, job) is JobState.CANCELLED


@pytest.mark.parametrize("engine_mode", ["sqlite-file"])  # in memory its heartbeats run on the same loop
async def test_a_loop_that_is_blocked_for_longer_than_the_lease_keeps_it(
    engine: Engine, engine_url: str
) -> None:
    async def blocks() -> str:
        time.sleep(1.6)  # noqa: ASYNC251  the fault under test
        return "done"

    registry = Registry()
    registry.add(Definition(blocks, name="blocks"))
    job = a_job("blocks")
    await engine.jobs.enqueue([job])
    async with EmbeddedWorker(registry, config(engine_url)) as worker:
        await worker.moments.reached("settled")
    assert worker.moments.count("refused") == 0
    (found,) = await engine.inspect.get([job.id])
    assert found is not None
    assert (found.state, found.attempts, found.failure_count) == (JobState.COMPLETED, 1, 0)


async def test_a_thread_that_does_not_end_is_not_taken_from_it(
    engine: Engine, engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.worker.worker.DRAIN_GRACE_S", 0.02)
    started, end = threading.Event(), threading.Event()

    def deaf() -> None:
        started.set()
        end.wait()

    registry = Registry()
    registry.add(Definition(deaf, name="deaf"))
    job = a_job("deaf")
    await engine.jobs.enqueue([job])
    async with EmbeddedWorker(registry, config(engine_url, shutdown_timeout_s=0.0)):
        await asyncio.to_thread(started.wait)
    assert await state_of(engine, job) is JobState.RUNNING, "its lease runs out by itself"
    assert len(await engine.members.list()) == 1
    end.set()


@pytest.mark.every_engine
async def test_declared_dead_it_goes_on_as_a_new_claimant(engine: Engine, engine_url: str) -> None:
    started, stopped = asyncio.Event(), asyncio.Event()
    runs: list[int] = []

    async def works() -> None:
        runs.append(1)
        if len(runs) == 1:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

    registry = Registry()
    registry.add(Definition(works, name="works"))
    job = a_job("works")
    await engine.jobs.enqueue([job])
    async with EmbeddedWorker(registry, config(engine_url)) as worker:
        await started.wait()
        await engine.jobs.retire(worker._claimant)
        await stopped.wait()
        await worker.moments.reached("settled")
    assert await state_of(engine, job) is JobState.COMPLETED
    assert len(runs) == 2


def held_tables() -> int:
    """Descriptors of held tables in this process."""
    links = (os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if entry.is_symlink())
    return sum("tidemill-held" in link for link in links)


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks into /proc")


@linux
async def test_its_held_table_is_closed_at_the_end(engine: Engine, engine_url: str) -> None:
    before = held_tables()
    async with EmbeddedWorker(Registry(), config(engine_url)) as worker:
        await worker.moments.reached("idle")
        assert held_tables() > before
    assert held_tables() == before


@linux
async def test_the_held_table_of_a_retired_claimant_is_closed_and_does_not_keep_it_from_signing_off(
    engine: Engine, engine_url: str
) -> None:
    before, started = held_tables(), asyncio.Event()
    runs: list[int] = []

    async def works() -> None:
        runs.append(1)
        if len(runs) == 1:
            started.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return  # as if nothing had happened: this outcome is sent to nobody

    registry = Registry()
    registry.add(Definition(works, name="works"))
    await engine.jobs.enqueue([a_job("works")])
    async with EmbeddedWorker(registry, config(engine_url)) as worker:
        await started.wait()
        of_one = held_tables()
        await engine.jobs.retire(worker._claimant)
        await worker.moments.reached("settled")
        assert held_tables() == of_one > before
    assert held_tables() == before
    assert await engine.members.list() == []


async def test_a_held_table_is_open_as_long_as_a_thread_is_in_it(
    engine: Engine, engine_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidemill.worker.worker.DRAIN_GRACE_S", 0.02)
    started, end, closed = threading.Event(), threading.Event(), asyncio.Event()
    close = HeldTable.close

    def note_close(held_table: HeldTable) -> None:
        close(held_table)
        closed.set()

    monkeypatch.setattr(HeldTable, "close", note_close)

    def deaf() -> None:
        started.set()
        end.wait()

    registry = Registry()
    registry.add(Definition(deaf, name="deaf"))
    await engine.jobs.enqueue([a_job("deaf")])
    async with EmbeddedWorker(registry, config(engine_url, shutdown_timeout_s=0.0)):
        await asyncio.to_thread(started.wait)
    assert not closed.is_set()
    end.set()
    await closed.wait()


async def test_its_lease_is_fresh_only_after_it_has_received_its_lost_runs(
    engine: Engine, engine_url: str
) -> None:
    """Heartbeats come from another thread. What that thread does at once, this loop sees before it received
    anything: a run that waits and was lost would begin."""
    received: list[str] = []
    async with EmbeddedWorker(Registry(), config(engine_url)) as worker:
        await worker.moments.reached("idle")
        later_ns = boot_ns() + 10**9

        def lost(fences: Iterable[int]) -> None:
            received.append("fresh" if worker._held_table.heartbeat_ns >= later_ns else "stale")

        worker.worker.lost = lost  # type: ignore[method-assign]
        sender = threading.Thread(target=lambda: (worker.lost([7]), worker.heartbeat_answered(later_ns)))
        sender.start()
        sender.join()  # the loop is blocked meanwhile, as by a task
        assert worker._held_table.heartbeat_ns < later_ns
        await asyncio.sleep(0)
        assert received == ["stale"]
        assert worker._held_table.heartbeat_ns == later_ns


@pytest.mark.parametrize("fault", ["_heartbeat", "_sign_off"])
async def test_a_heart_that_dies_does_not_take_the_block_with_it(
    engine: Engine,
    engine_url: str,
    fault: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def fails(*_: object) -> None:
        raise LookupError("a fault of our own")

    monkeypatch.setattr(EmbeddedHeartbeat, fault, fails)
    async with EmbeddedWorker(Registry(), config(engine_url)) as worker:
        heartbeats = worker._heartbeats
        if fault == "_sign_off":
            await worker.moments.reached("idle")
        elif heartbeats._thread is not None:
            await asyncio.to_thread(heartbeats._thread.join)
        elif heartbeats._task is not None:
            await asyncio.wait({heartbeats._task})
    assert worker.drained is not None
    assert any("have ended" in record.getMessage() for record in caplog.records)


async def test_a_given_engine_stays_open(engine: Engine, engine_url: str) -> None:
    async with EmbeddedWorker(Registry(), config(engine_url), engine=engine) as worker:
        await worker.moments.reached("idle")
    assert await engine.now() > 0


async def test_it_says_which_engine_it_opened_and_when_that_ends(engine_url: str, engine: Engine) -> None:
    seen: list[object] = []

    def adopt(opened: Engine) -> object:
        seen.append(opened)
        return lambda: seen.append("closed")

    async with EmbeddedWorker(Registry(), config(engine_url), adopt=adopt):  # type: ignore[arg-type]
        assert len(seen) == 1
    assert seen[1:] == ["closed"]


async def test_a_url_that_makes_no_sense_is_refused_on_entry() -> None:
    from tidemill.model.errors import BadUrl

    with pytest.raises(BadUrl):
        await connect("nonsense://")
    with pytest.raises(BadUrl):
        async with EmbeddedWorker(Registry(), config("nonsense://")):
            pass
