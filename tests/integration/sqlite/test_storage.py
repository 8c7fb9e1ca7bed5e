"""What the file takes, and a reader that keeps the WAL from being used again."""

import sqlite3
from pathlib import Path

from tidemill.engine.registry import connect
from tidemill.model.queues.queue import Keep, QueueOptions
from tidemill.model.storage import HolderKind
from tidemill.testing.contract.fixtures import START, Clock, a_claimant, configure, some_jobs


async def test_a_reader_that_stays_keeps_the_wal(tmp_path: Path) -> None:
    file = tmp_path / "jobs.db"
    engine = await connect(f"sqlite:///{file}?durability=normal")
    reader = sqlite3.connect(file, isolation_level=None)
    try:
        assert (await engine.inspect.storage()).holders == []
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM sqlite_master").fetchone()
        await engine.jobs.enqueue(some_jobs(500, body=b"x" * 1_000))
        (holder,) = (await engine.inspect.storage()).holders
        assert holder.kind is HolderKind.READER
        assert (holder.bytes or 0) > 500_000
        reader.execute("COMMIT")
        assert (await engine.inspect.storage()).holders == []
    finally:
        reader.close()
        await engine.close()


async def test_what_was_deleted_is_free_to_be_used_again(tmp_path: Path) -> None:
    engine = await connect(f"sqlite:///{tmp_path}/jobs.db?durability=normal")
    try:
        clock = Clock(START)
        claimant = await a_claimant(engine, clock)
        await configure(engine, "q", QueueOptions(keep_completed=Keep(age=1.0)), now=clock.now)
        await engine.jobs.enqueue(some_jobs(500, body=b"x" * 1_000), now=clock.now)
        await claimant.complete(*await claimant.take(most=500))
        clock.forward(100)
        assert (await engine.jobs.prune(now=clock.now)).jobs == 500
        (database,) = [part for part in (await engine.inspect.storage()).parts if part.name == "database"]
        assert (database.free or 0) > 300_000
    finally:
        await engine.close()
