"""SAQ, on Redis and on PostgreSQL: `saq saq_jobs.settings --workers 2`.

https://saq-py.readthedocs.io/en/latest/worker.html: `concurrency` jobs at once in each process, here 50,
as each may hold one of the pool's connections (100 in redis-py); a finished job is not kept (`ttl=-1`);
uvloop where it is installed. The call for many jobs (`map`) waits for results, so there is none here. A
job that is found abandoned when workers come back is swept: by default every 60 s, once it is past its
heartbeat or timeout, and run again if it has retries; it gets one more here."""
# mypy: disable-error-code="import-not-found, import-untyped"

import asyncio
from typing import Any

import errands
import ledger
import uvloop
from saq import Queue

queue = Queue.from_url(errands.place())
new_event_loop = uvloop.new_event_loop


async def noop(context: Any, *, turn: int, payload: str) -> None:
    ledger.noop(turn)


async def stamp(context: Any, *, job: int) -> None:
    ledger.event("stamp", job)


async def slow(context: Any, *, job: int) -> None:
    ledger.event("begin", job)
    await asyncio.sleep(ledger.SLOW_S)
    ledger.event("end", job)


settings = {"queue": queue, "functions": [noop, stamp, slow], "concurrency": 50}
NAMES = {"noop": ("turn", "payload"), "stamp": ("job",), "slow": ("job",)}


class Jobs:
    many = None

    async def setup(self) -> None:
        await queue.connect()

    async def one(self, task: str, *arguments: object) -> None:
        await queue.enqueue(task, ttl=-1, retries=2, **dict(zip(NAMES[task], arguments, strict=True)))

    async def left(self) -> int:
        return int(await queue.count("incomplete"))

    async def close(self) -> None:
        await queue.disconnect()
