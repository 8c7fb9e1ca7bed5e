"""Taskiq on Redis, as list or as stream: `taskiq worker taskiq_jobs:broker --workers 2`.

https://taskiq-python.github.io/available-components/brokers.html#redis: `ListQueueBroker` is fast and
acknowledges nothing, `RedisStreamBroker` acknowledges and takes unacknowledged jobs again after ten
minutes. https://taskiq-python.github.io/guide/cli.html: two processes, 200 tasks at once in each
(`--max-async-tasks`), as Tidemill has; uvloop where it is installed. No result backend, as nobody asks for
results. There is no call for many. `socket_timeout=None`: with redis-py's own five seconds a worker that
waits longer for a job stops listening for good."""
# mypy: disable-error-code="import-not-found, import-untyped, untyped-decorator"

import asyncio
import os

import errands
import ledger
import uvloop
from redis.asyncio import Redis
from taskiq_redis import ListQueueBroker, RedisStreamBroker

new_event_loop = uvloop.new_event_loop
STREAM = os.environ["BENCH_FORM"] == "stream"
_Broker = RedisStreamBroker if STREAM else ListQueueBroker
broker = _Broker(url=errands.place(), socket_timeout=None)


@broker.task(task_name="noop")
async def noop(turn: int, payload: str) -> None:
    ledger.noop(turn)


@broker.task(task_name="stamp")
async def stamp(job: int) -> None:
    ledger.event("stamp", job)


@broker.task(task_name="slow")
async def slow(job: int) -> None:
    ledger.event("begin", job)
    await asyncio.sleep(ledger.SLOW_S)
    ledger.event("end", job)


TASKS = {"noop": noop, "stamp": stamp, "slow": slow}


class Jobs:
    many = None

    async def setup(self) -> None:
        await broker.startup()

    async def one(self, task: str, *arguments: object) -> None:
        await TASKS[task].kiq(*arguments)

    async def left(self) -> int:
        async with Redis.from_url(errands.place()) as client:
            if not STREAM:
                return int(await client.llen("taskiq"))
            [group] = await client.xinfo_groups("taskiq")
            return int(group["pending"]) + int(group["lag"] or 0)

    async def close(self) -> None:
        await broker.shutdown()
