"""Tidemill, measured as the others are: `tidemill worker tidemill_jobs:app -p 2 -c 200`.

Two hundred slots because no-ops are short (docs/performance.md); everything else is the default: nothing
acknowledged is lost, completed jobs are kept."""
# mypy: disable-error-code="import-not-found"

import asyncio
import os
from typing import Any

import errands
import ledger

from tidemill import Tidemill
from tidemill.app.task import Task
from tidemill.engine.registry import connect

app = Tidemill(url=os.environ["BENCH_URL"])


@app.task(name="noop")
async def noop(turn: int, payload: str) -> None:
    ledger.noop(turn)


@app.task(name="stamp")
async def stamp(job: int) -> None:
    ledger.event("stamp", job)


@app.task(name="slow")
async def slow(job: int) -> None:
    ledger.event("begin", job)
    await asyncio.sleep(ledger.SLOW_S)
    ledger.event("end", job)


TASKS: dict[str, Task[..., Any]] = {"noop": noop, "stamp": stamp, "slow": slow}


class Jobs:
    async def setup(self) -> None:
        engine = await connect(errands.place())
        await engine.close()

    async def one(self, task: str, *arguments: object) -> None:
        await TASKS[task].aenqueue(*arguments)

    async def many(self, turn: int, count: int) -> None:
        await app.aenqueue_many(noop.call(turn, errands.PAYLOAD) for _ in range(count))

    async def left(self) -> int:
        engine = await connect(errands.place())
        try:
            counts = await engine.inspect.counts()
        finally:
            await engine.close()
        return sum(queue.ready + queue.scheduled + queue.running for queue in counts)

    async def close(self) -> None:
        await app.aclose()
