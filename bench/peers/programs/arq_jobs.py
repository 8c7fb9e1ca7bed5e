"""arq: `arq arq_jobs.WorkerSettings`, two such processes.

https://arq-docs.helpmanual.io/#arq.worker.Worker: `max_jobs` at once, here 200 as Tidemill has;
`keep_result=0`, as nobody asks for results; `poll_delay` is half a second by default, here 10 ms. There is
no call for many jobs."""
# mypy: disable-error-code="import-not-found, import-untyped"

import asyncio
from typing import Any, ClassVar

import errands
import ledger
import uvloop
from arq import create_pool
from arq.connections import RedisSettings

SETTINGS = RedisSettings.from_dsn(errands.place())
new_event_loop = uvloop.new_event_loop


async def noop(context: dict[str, Any], turn: int, payload: str) -> None:
    ledger.noop(turn)


async def stamp(context: dict[str, Any], job: int) -> None:
    ledger.event("stamp", job)


async def slow(context: dict[str, Any], job: int) -> None:
    ledger.event("begin", job)
    await asyncio.sleep(ledger.SLOW_S)
    ledger.event("end", job)


class WorkerSettings:
    functions: ClassVar = [noop, stamp, slow]
    redis_settings = SETTINGS
    max_jobs = 200
    keep_result = 0
    poll_delay = 0.01


class Jobs:
    many = None

    async def setup(self) -> None:
        self._pool = await create_pool(SETTINGS)

    async def one(self, task: str, *arguments: object) -> None:
        await self._pool.enqueue_job(task, *arguments)

    async def left(self) -> int:
        return int(await self._pool.zcard("arq:queue"))

    async def close(self) -> None:
        await self._pool.aclose()
