"""A full disk: nothing is half written, and everything works again once there is room."""

import os
from pathlib import Path

import pytest

from tests.integration.sqlite.conftest import Mount
from tests.integration.sqlite.opened import connect
from tests.integration.sqlite.plain_file import contents, file_url, is_sound, plain
from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineFull
from tidemill.model.jobs.job import NewJob
from tidemill.model.jobs.run import ClaimedJob
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_claimant,
    a_job,
    created,
    ids_of,
    listed,
    some_jobs,
)

BALLAST = 1 << 20


async def enqueue_until_full(engine: Engine, clock: Clock) -> list[NewJob]:
    """The jobs that were acknowledged."""
    stored: list[NewJob] = []
    for number in range(1_000):
        batch = some_jobs(20, queue=f"q{number % 7}", body=os.urandom(1_000))
        try:
            assert created(await engine.jobs.enqueue(batch, now=clock.now)) == [True] * 20
        except EngineFull:
            return stored
        stored += batch
    pytest.fail("the disk never filled up")


def holds(path: Path, *, jobs: list[NewJob]) -> None:
    """Exactly these are stored, and the file is sound."""
    with plain(path) as db:
        is_sound(db)
        assert {job_id for (job_id,) in db.execute("SELECT id FROM job")} == set(ids_of(jobs))


@pytest.fixture
def disk(mount: Mount) -> Path:
    """3 MB, a third of which can be freed."""
    folder = mount("size=3m")
    (folder / "ballast").write_bytes(bytes(BALLAST))
    return folder


async def test_nothing_is_half_written_and_room_helps(disk: Path, clock: Clock) -> None:
    path = disk / "a.db"
    engine = await connect(file_url(path, durability="full"))
    stored = await enqueue_until_full(engine, clock)
    assert stored
    holds(path, jobs=stored)
    with pytest.raises(EngineFull, match=r"no space is left.*free some and try again"):
        await engine.jobs.enqueue(some_jobs(100, body=os.urandom(1_000)), now=clock.now)
    with plain(path) as db:
        before = contents(db)
        with pytest.raises(EngineFull):
            await engine.jobs.enqueue([a_job(queue="new", body=os.urandom(100_000))], now=clock.now)
        assert contents(db) == before
    assert len(await listed(engine)) == len(stored)
    (disk / "ballast").unlink()
    more = some_jobs(20, queue="new", body=os.urandom(1_000))
    assert created(await engine.jobs.enqueue(more, now=clock.now)) == [True] * 20
    holds(path, jobs=[*stored, *more])
    claimant = await a_claimant(engine, clock)
    assert len(await claimant.take("q0", "new", most=10)) == 10
    await engine.close()
    holds(path, jobs=[*stored, *more])


async def test_runs_end_after_all(disk: Path, clock: Clock) -> None:
    """A settle that found no room is repeated under the same fence, by whoever has it."""
    path = disk / "a.db"
    engine = await connect(file_url(path))
    claimant = await a_claimant(engine, clock)
    jobs = some_jobs(10)
    await engine.jobs.enqueue(jobs, now=clock.now)
    runs = await claimant.take()
    stored = [*jobs, *await enqueue_until_full(engine, clock)]
    settled = await settle_until_full(claimant, runs)
    (disk / "ballast").unlink()
    answers = await claimant.complete(*runs)
    assert answers == ["already"] * settled + ["applied"] * (10 - settled)
    holds(path, jobs=stored)
    await engine.close()


async def settle_until_full(claimant: Claimant, runs: list[ClaimedJob]) -> int:
    """How many could be settled one by one, each with as large a result as there may be."""
    for number, run in enumerate(runs):
        try:
            assert await claimant.complete(run, result=os.urandom(1 << 20)) == ["applied"]
        except EngineFull:
            return number
    pytest.fail("there was room for every result")


async def test_it_opens_again_as_it_was_left(disk: Path, clock: Clock) -> None:
    path = disk / "a.db"
    engine = await connect(file_url(path))
    stored = await enqueue_until_full(engine, clock)
    await engine.close()
    (disk / "ballast").unlink()
    engine = await connect(file_url(path))
    assert len(await listed(engine)) == len(stored)
    await engine.close()
    holds(path, jobs=stored)


async def test_a_queue_that_found_no_room_is_not_remembered(disk: Path, clock: Clock) -> None:
    """Two clients: what one remembers of a step that was undone must not mix with what the other did."""
    path = disk / "a.db"
    one, other = await connect(file_url(path)), await connect(file_url(path))
    await enqueue_until_full(one, clock)
    with pytest.raises(EngineFull):
        await one.jobs.enqueue([a_job(queue="undone", body=os.urandom(500_000))], now=clock.now)
    (disk / "ballast").unlink()
    await other.jobs.enqueue([a_job(queue="done")], now=clock.now)
    job = a_job(queue="undone")
    await one.jobs.enqueue([job], now=clock.now)
    (record,) = await other.inspect.get([job.id])
    assert record is not None
    assert record.queue == "undone"
    counts = {each.queue: each.ready for each in await one.inspect.counts(now=clock.now)}
    assert (counts["undone"], counts["done"]) == (1, 1)
    with plain(path) as db:
        is_sound(db)
    await one.close()
    await other.close()
