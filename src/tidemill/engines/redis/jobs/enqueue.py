"""Storing new jobs: one script a call."""

from collections.abc import Sequence

from tidemill.engines.redis.db.call import ScriptCall
from tidemill.engines.redis.db.store import RedisStore
from tidemill.engines.redis.jobs.tail import plain
from tidemill.model.jobs.job import NewJob
from tidemill.model.time import Instant


async def enqueue(store: RedisStore, jobs: Sequence[NewJob], now: Instant | None) -> list[bool]:
    """Store jobs that have been checked; True for each that was created."""
    store.check()
    if not jobs:
        return []
    created = await store.run(store.enqueues, "enqueue", _pack(jobs), now)
    if isinstance(created, int):  # all of them are new
        return [True] * created
    return [bool(one) for one in created]


def _pack(jobs: Sequence[NewJob]) -> ScriptCall:
    """As `enqueue.lua` reads them: the short form, if all are plain."""
    call = ScriptCall()
    if all(map(plain, jobs)):
        call.values["ranges"] = call.ranges(jobs)
    else:
        call.values["jobs"] = call.jobs(jobs)
    return call
