"""Damaged files: loud at open and in use; a torn WAL costs only what was torn."""
# ruff: noqa: ASYNC240  (nothing else runs on the loop)

import asyncio
import os
from pathlib import Path

import pytest

from tests.integration.sqlite.children import child
from tests.integration.sqlite.opened import connect
from tests.integration.sqlite.plain_file import beside, contents, file_url, is_sound, plain
from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineDamaged, EngineError
from tidemill.testing.contract.fixtures import START, Clock, a_job, created, ids_of, listed, some_jobs

PAGE = 4_096
ANSWERS_WITHIN_S = 10

ENQUEUES = f"""
import asyncio, sys
from tidemill.engine.registry import connect
from tidemill.testing.contract.fixtures import a_job

async def main():
    engine = await connect(sys.argv[1])
    for number in range(30):
        await engine.jobs.enqueue([a_job(task=f"t{{number}}")], now={START})
        print(number)
    input()

asyncio.run(main())
"""


async def filled(path: Path, jobs: int = 1_000) -> None:
    """A database of a few hundred pages, closed."""
    engine = await connect(file_url(path))
    await engine.jobs.enqueue(some_jobs(jobs, body=bytes(500)), now=START)
    await engine.close()


def scribble(path: Path, *, first: float, last: float) -> None:
    """Overwrite the pages of this part of a file."""
    size = path.stat().st_size
    begin, end = (round(part * size) // PAGE * PAGE for part in (first, last))
    assert begin < end
    with path.open("r+b") as file:
        file.seek(begin)
        file.write(os.urandom(end - begin))


@pytest.mark.parametrize("first", [0.1, 0.4, 0.7])
async def test_damage_is_found_at_open(path: Path, first: float) -> None:
    await filled(path)
    scribble(path, first=first, last=first + 0.2)
    with pytest.raises(EngineDamaged, match=r"damaged.*stop all processes and restore a backup"):
        await connect(file_url(path))


async def test_a_file_cut_short_is_found_at_open(path: Path) -> None:
    await filled(path)
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(EngineDamaged, match="restore a backup"):
        await connect(file_url(path))


async def test_damage_in_use_is_loud(path: Path) -> None:
    """Whatever is still answered is true."""
    engine = await connect(file_url(path))
    jobs = some_jobs(3_000, body=bytes(1_500))
    for begin in range(0, len(jobs), 1_000):
        await engine.jobs.enqueue(jobs[begin : begin + 1_000], now=START)
    with plain(path) as db:
        assert db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    scribble(path, first=0.02, last=0.98)
    errors: list[EngineError] = []
    found = 0
    for job in jobs[::50]:
        try:
            (record,) = await asyncio.wait_for(engine.inspect.get([job.id]), ANSWERS_WITHIN_S)
        except EngineError as error:
            errors.append(error)
        else:
            assert record is not None
            assert record.body == job.body
            found += 1
    assert errors
    assert all(isinstance(error, EngineDamaged) for error in errors)
    with pytest.raises(EngineDamaged):
        await listed(engine)
    await engine.close()


async def test_rows_that_make_no_sense_are_an_error_and_not_a_silence(path: Path, clock: Clock) -> None:
    engine = await connect(file_url(path))
    await engine.jobs.enqueue([a_job()], now=clock.now)
    with plain(path) as db:
        before = contents(db)["counter"]
        db.execute("DELETE FROM counter")
        with pytest.raises(EngineDamaged):
            await asyncio.wait_for(engine.jobs.enqueue([a_job()], now=clock.now), ANSWERS_WITHIN_S)
        db.execute(f"INSERT INTO counter VALUES {before[0]}")
    assert created(
        await asyncio.wait_for(engine.jobs.enqueue([a_job()], now=clock.now), ANSWERS_WITHIN_S)
    ) == [True]
    await engine.close()


async def test_options_that_make_no_sense_are_named_and_stop_no_other_queue(
    path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    engine = await connect(file_url(path))
    await engine.jobs.enqueue([a_job(queue="broken"), a_job()], now=clock.now)
    with plain(path) as db:
        db.execute("UPDATE counter SET config = config + 1")
        db.execute("UPDATE queue SET options = x'7b' WHERE name = 'broken'")
    assert created(await engine.jobs.enqueue([a_job(), a_job(queue="broken")], now=clock.now)) == [True] * 2
    assert [record.message for record in caplog.records if "cannot be read" in record.message] == [
        "the queue broken: the options cannot be read: Input data was truncated; "
        "the rest of its options is in force"
    ]
    await engine.close()


async def enqueued_and_killed(path: Path) -> None:
    """30 jobs, each acknowledged, by a process that was killed: all of them still in the WAL."""
    with child(ENQUEUES, file_url(path)) as process:
        assert [process.read() for _ in range(30)] == [str(number) for number in range(30)]
        process.kill()
    assert beside(path, "-wal").stat().st_size > 30 * PAGE


async def tasks_in(engine: Engine) -> list[str]:
    return [job.task for job in await listed(engine)]


async def test_a_killed_process_loses_nothing_acknowledged(path: Path) -> None:
    await enqueued_and_killed(path)
    engine = await connect(file_url(path))
    assert await tasks_in(engine) == [f"t{number}" for number in range(30)]
    await engine.close()


@pytest.mark.parametrize("tail", [b"x", os.urandom(PAGE + 24), bytes(3 * PAGE), os.urandom(1 << 20)])
async def test_garbage_after_the_wal_is_passed_over(path: Path, tail: bytes) -> None:
    await enqueued_and_killed(path)
    with beside(path, "-wal").open("ab") as wal:
        wal.write(tail)
    beside(path, "-shm").unlink()
    engine = await connect(file_url(path))
    assert await tasks_in(engine) == [f"t{number}" for number in range(30)]
    await engine.close()


@pytest.mark.parametrize(("part", "least"), [(0.999, 28), (0.9, 20), (0.5, 5), (0.4, 0), (0.0, -1)])
async def test_a_wal_cut_short_keeps_what_lies_before_the_cut(path: Path, part: float, least: int) -> None:
    """The first jobs, in order, without a hole, as many as commits are whole."""
    await enqueued_and_killed(path)
    wal = beside(path, "-wal")
    os.truncate(wal, round(part * wal.stat().st_size))
    beside(path, "-shm").unlink()
    engine = await connect(file_url(path))
    tasks = await tasks_in(engine)
    assert tasks == [f"t{number}" for number in range(len(tasks))]
    assert len(tasks) < 30
    assert len(tasks) > least
    with plain(path) as db:
        is_sound(db)
    assert created(await engine.jobs.enqueue([a_job()], now=START)) == [True]
    await engine.close()


async def test_a_torn_byte_in_the_middle_of_the_wal_ends_it_there(path: Path) -> None:
    await enqueued_and_killed(path)
    wal = beside(path, "-wal")
    data = bytearray(wal.read_bytes())
    data[len(data) // 2] ^= 0xFF
    wal.write_bytes(data)
    beside(path, "-shm").unlink()
    engine = await connect(file_url(path))
    tasks = await tasks_in(engine)
    assert 0 < len(tasks) < 30
    assert tasks == [f"t{number}" for number in range(len(tasks))]
    await engine.close()


async def test_a_plain_reader_finds_what_the_engine_has_acknowledged(path: Path) -> None:
    engine = await connect(file_url(path))
    jobs = some_jobs(5)
    await engine.jobs.enqueue(jobs, now=START)
    with plain(path) as db:
        assert {job_id for (job_id,) in db.execute("SELECT id FROM job")} == set(ids_of(jobs))
    await engine.close()
