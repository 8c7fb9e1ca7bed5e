"""PgQueuer: `python pgqueuer_jobs.py`, two such processes.

https://github.com/janbjorge/pgqueuer/blob/main/docs/guides/performance-tuning.md: for short jobs a larger
`batch_size`, a direct asyncpg connection, the autovacuum settings of `pgq autovac`, durable tables (the
default), lists for bulk enqueue; with uvloop. A job whose process has not beaten for `heartbeat_timeout`
(30 s by default) is taken again."""
# mypy: disable-error-code="import-not-found, import-untyped, untyped-decorator"

import asyncio
import json
from datetime import timedelta

import asyncpg
import errands
import ledger
import uvloop
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.queries import Queries

BATCH = 250


def _encoded(*arguments: object) -> bytes:
    return json.dumps(arguments).encode()


class Jobs:
    _connection: "asyncpg.Connection | None" = None

    async def _queries(self) -> Queries:
        self._connection = self._connection or await asyncpg.connect(errands.place())
        return Queries(AsyncpgDriver(self._connection))

    async def setup(self) -> None:
        queries = await self._queries()
        assert self._connection is not None
        if await self._connection.fetchval("SELECT to_regclass('pgqueuer')") is None:
            await queries.install()
            await queries.optimize_autovacuum()

    async def one(self, task: str, *arguments: object) -> None:
        await (await self._queries()).enqueue(task, _encoded(*arguments), 0)

    async def many(self, turn: int, count: int) -> None:
        payload = _encoded(turn, errands.PAYLOAD)
        await (await self._queries()).enqueue(["noop"] * count, [payload] * count, [0] * count)

    async def left(self) -> int:
        await self._queries()
        assert self._connection is not None
        return int(await self._connection.fetchval("SELECT count(*) FROM pgqueuer"))

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()


async def work() -> None:
    pgq = PgQueuer.from_asyncpg_connection(await asyncpg.connect(errands.place()))

    @pgq.entrypoint("noop")
    async def noop(job: object) -> None:
        ledger.noop(json.loads(job.payload)[0])  # type: ignore[attr-defined]

    @pgq.entrypoint("stamp")
    async def stamp(job: object) -> None:
        ledger.event("stamp", json.loads(job.payload)[0])  # type: ignore[attr-defined]

    @pgq.entrypoint("slow")
    async def slow(job: object) -> None:
        number = json.loads(job.payload)[0]  # type: ignore[attr-defined]
        ledger.event("begin", number)
        await asyncio.sleep(ledger.SLOW_S)
        ledger.event("end", number)

    await pgq.run(batch_size=BATCH, dequeue_timeout=timedelta(seconds=30))


new_event_loop = uvloop.new_event_loop

if __name__ == "__main__":
    uvloop.run(work())
