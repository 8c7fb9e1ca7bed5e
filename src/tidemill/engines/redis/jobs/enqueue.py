"""Storing new jobs: one script a call."""

from collections.abc import Sequence

from tidemill.engine.shared.uniques import may_move
from tidemill.engines.redis.db.call import ScriptCall
from tidemill.engines.redis.db.store import RedisStore
from tidemill.engines.redis.jobs.tail import plain
from tidemill.model.jobs.job import NewJob, Stored
from tidemill.model.jobs.move import Moves
from tidemill.model.time import Instant


async def enqueue(
    store: RedisStore, jobs: Sequence[NewJob], moves: Moves | None, now: Instant | None
) -> list[Stored]:
    """Store jobs that have been checked."""
    store.check()
    if not jobs:
        return []
    naming = moves if any(map(may_move, jobs)) else None
    created = await store.run(store.enqueues, "enqueue", _pack(jobs), now, naming)
    if isinstance(created, int):  # all of them are new
        return [Stored(job.id, True) for job in jobs]
    return answers_of(jobs, created)


def answers_of(jobs: Sequence[NewJob], created: Sequence[int | bytes]) -> list[Stored]:
    """1 (created), 0 (known), or the id of the job that was met."""
    return [
        Stored(answer, False) if isinstance(answer, bytes) else Stored(job.id, bool(answer))
        for job, answer in zip(jobs, created, strict=True)
    ]


def _pack(jobs: Sequence[NewJob]) -> ScriptCall:
    """As `enqueue.lua` reads them: the short form, if all are plain."""
    call = ScriptCall()
    if all(map(plain, jobs)):
        call.values["ranges"] = call.ranges(jobs)
    else:
        call.values["jobs"] = call.jobs(jobs)
    return call
