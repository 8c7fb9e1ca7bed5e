"""Storing new jobs: one script for what has come together."""

from collections.abc import Hashable, Sequence

from tidemill.engine.merging import ALONE, Merging
from tidemill.engines.redis.call import ScriptCall
from tidemill.engines.redis.store import RedisStore
from tidemill.engines.redis.tail import plain
from tidemill.model.job import NewJob
from tidemill.model.time import Instant

PLAIN = "plain"


def enqueuer(store: RedisStore) -> Merging[ScriptCall]:
    """Of one engine object."""

    async def send(call: ScriptCall, now: Instant | None) -> Sequence[bool]:
        created = await store.send(store.enqueues, "enqueue", call, now)
        if isinstance(created, int):  # all of them are new
            return [True] * created
        return [bool(one) for one in created]

    return Merging(store, form=_form, pack=_pack, send=send)


def _form(jobs: Sequence[NewJob]) -> Hashable:
    if all(map(plain, jobs)):
        return PLAIN
    return ALONE if any(job.after for job in jobs) else "whole"


def _pack(jobs: Sequence[NewJob], form: Hashable) -> ScriptCall:
    """As `enqueue.lua` reads them."""
    call = ScriptCall()
    if form == PLAIN:
        call.values["stretches"] = call.stretches(jobs)
    else:
        call.values["jobs"] = call.jobs(jobs)
    return call
