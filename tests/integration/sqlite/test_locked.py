"""Another process holds the write lock: calls wait for it, for as long as they are told to."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.integration.sqlite.children import HOLDS_THE_LOCK, child
from tests.integration.sqlite.opened import connect
from tests.integration.sqlite.plain_file import contents, file_url, is_sound, plain
from tidemill.model.errors import EngineUnavailable
from tidemill.testing.contract.fixtures import Clock, a_claimant, a_job, created, listed, some_jobs


@pytest.mark.parametrize("seconds", [0.3, 10])
async def test_calls_wait_for_the_lock(path: Path, clock: Clock, seconds: float) -> None:
    """Reads do not even wait; calls that came together are answered together."""
    engine = await connect(file_url(path, lock_timeout=60))
    claimant = await a_claimant(engine, clock)
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    with child(HOLDS_THE_LOCK, path) as process:
        assert process.read() == "locked"
        began = time.monotonic()
        enqueue = asyncio.ensure_future(engine.jobs.enqueue([a_job()], now=clock.now))
        take = asyncio.ensure_future(claimant.take(most=2))
        heartbeat = asyncio.ensure_future(claimant.heartbeat(answered=0))
        assert len(await listed(engine)) == 3
        done, _ = await asyncio.wait([enqueue, take, heartbeat], timeout=seconds)
        assert not done, "the lock was held"
        process.go_on()
        assert process.read() == "free"
        await asyncio.wait_for(asyncio.gather(enqueue, take, heartbeat), 30)
        assert time.monotonic() - began >= seconds
    assert created(enqueue.result()) == [True]
    assert len(take.result()) == 2
    assert not heartbeat.result().new
    assert len(await listed(engine)) == 4
    await engine.close()


async def test_when_patience_runs_out_nothing_was_changed(path: Path, clock: Clock) -> None:
    engine = await connect(file_url(path, lock_timeout=0.5))
    claimant = await a_claimant(engine, clock)
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    run = await claimant.take_one()
    with plain(path) as db, child(HOLDS_THE_LOCK, path) as process:
        before = contents(db)
        assert process.read() == "locked"
        job = a_job(queue="new")
        began = time.monotonic()
        with pytest.raises(
            EngineUnavailable, match=r"locked by another process for over 0.5 s.*lock_timeout"
        ):
            await engine.jobs.enqueue([job], now=clock.now)
        assert time.monotonic() - began >= 0.5
        with pytest.raises(EngineUnavailable):
            await claimant.complete(run)
        process.go_on()
        assert process.read() == "free"
        assert contents(db) == before
        assert created(await engine.jobs.enqueue([job], now=clock.now)) == [True]
        assert await claimant.complete(run) == ["applied"]
        is_sound(db)
    await engine.close()


async def test_opening_waits_for_the_process_that_makes_the_file(path: Path) -> None:
    with child(HOLDS_THE_LOCK, path) as process:
        assert process.read() == "locked"
        opening = asyncio.ensure_future(connect(file_url(path, lock_timeout=60)))
        done, _ = await asyncio.wait([opening], timeout=0.5)
        assert not done, "the lock was held"
        process.go_on()
        assert process.read() == "free"
        engine = await asyncio.wait_for(opening, 30)
    await engine.close()


async def test_opening_gives_up_after_its_patience(path: Path) -> None:
    with child(HOLDS_THE_LOCK, path) as process:
        assert process.read() == "locked"
        with pytest.raises(EngineUnavailable, match="locked by another process"):
            await connect(file_url(path, lock_timeout=0.3))


async def test_a_killed_holder_frees_the_lock(path: Path, clock: Clock) -> None:
    engine = await connect(file_url(path, lock_timeout=60))
    with child(HOLDS_THE_LOCK, path) as process:
        assert process.read() == "locked"
        call = asyncio.ensure_future(engine.jobs.enqueue([a_job()], now=clock.now))
        done, _ = await asyncio.wait([call], timeout=0.2)
        assert not done, "the lock was held"
        process.kill()
        assert created(await asyncio.wait_for(call, 30)) == [True]
    await engine.close()
