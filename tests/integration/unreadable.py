"""Entries of the catalogue that this release cannot read, and what a death does with them."""

from tidemill.engine.protocol import Engine
from tidemill.model.ids import handler_id
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Answer
from tidemill.testing.contract.fixtures import Claimant, Clock, a_job, job_of

ENTRIES = [
    b"no JSON",
    b"\xff\xfe",
    b"7",
    b'{"name":"bury","queue":7,"priority":5}',
    b'{"name":"bury","queue":"graves","priority":"high"}',
    b'{"name":"bury","queue":"graves","priority":99,"timeout":"long"}',
    b'{"name":"bury","queue":"graves","priority":5,"retry":{"attempts":"many","backoff":"linear"}}',
    b'{"name":"bury","queue":"graves","priority":5,"key":"a\\u0000b","timeout":1180591620717411303424}',
]
"""As a later release, or a hand, may have left them."""


async def a_job_dies(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    """All the same, and leaves its handler."""
    job = a_job(on_dead="bury")
    await engine.jobs.enqueue([job], now=clock.now)
    assert await claimant.fail(await claimant.take_one()) == [Answer.APPLIED]
    dead, handler = await job_of(engine, job.id), await job_of(engine, handler_id(job.id, 0))
    assert (dead.state, handler.state, handler.task) == (JobState.DEAD, JobState.READY, "bury")
    assert handler.queue in ("q", "graves")
    assert 0 <= handler.priority <= 10
