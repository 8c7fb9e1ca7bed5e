"""Many callers at once, as an app has them."""

import asyncio
from collections.abc import Sequence

from tidemill.app.enqueueing.producer import Producer
from tidemill.engine.protocol import Engine
from tidemill.model.jobs.job import NewJob, Stored


async def enqueue_at_once(engine: Engine, jobs: Sequence[NewJob]) -> list[list[Stored] | BaseException]:
    """One call for each job, all of them at the same moment, through the producer that merges them."""

    async def opened() -> Engine:
        return engine

    producer = Producer(opened, asyncio.get_running_loop())
    return await asyncio.gather(*map(producer.hand_over, [[job] for job in jobs]), return_exceptions=True)
