"""PgQueuer: `python pgqueuer_postgres.py install|enqueue|work URL [JOBS]`, in an environment with pgqueuer.

As https://github.com/janbjorge/pgqueuer/blob/main/docs/guides/performance-tuning.md has it for short jobs: a
larger `batch_size`, a direct asyncpg connection for the queue manager, the autovacuum settings of
`pgq autovac`, durable tables (the default), bulk enqueue by lists; with uvloop.

`work` says "ready", waits for a line on standard input, drains the queue and reports as the raw loop's
children do. Timed like ours: from the first start of a task to the last end, which leaves the last status
update out.
"""

import json
import sys
import time
from datetime import timedelta

import asyncpg  # type: ignore[import-not-found,import-untyped,unused-ignore]
import uvloop  # type: ignore[import-not-found,import-untyped,unused-ignore]
from pgqueuer import PgQueuer  # type: ignore[import-not-found,unused-ignore]
from pgqueuer.db import AsyncpgDriver  # type: ignore[import-not-found,unused-ignore]
from pgqueuer.queries import Queries  # type: ignore[import-not-found,unused-ignore]
from pgqueuer.types import QueueExecutionMode  # type: ignore[import-not-found,unused-ignore]

BATCH = 250
BULK = 1_000
PAYLOAD = b'"' + b"x" * 202 + b'"'


async def main(errand: str, url: str, jobs: int) -> dict[str, float] | None:
    connection = await asyncpg.connect(url)
    try:
        if errand == "install":
            queries = Queries(AsyncpgDriver(connection))
            await queries.install()
            await queries.optimize_autovacuum()
            return {}
        if errand == "enqueue":
            return await enqueue(connection, jobs)
        return await work(connection)
    finally:
        await connection.close()


async def enqueue(connection: "asyncpg.Connection", jobs: int) -> dict[str, float]:
    queries = Queries(AsyncpgDriver(connection))
    began, cpu = time.monotonic(), time.process_time()
    for first in range(0, jobs, BULK):
        count = min(BULK, jobs - first)
        await queries.enqueue(["noop"] * count, [PAYLOAD] * count, [0] * count)
    return {"jobs": jobs, "began": began, "ended": time.monotonic(), "cpu_s": time.process_time() - cpu}


async def work(connection: "asyncpg.Connection") -> dict[str, float] | None:
    pgq = PgQueuer.from_asyncpg_connection(connection)
    seen = {"jobs": 0, "began": 0.0, "ended": 0.0}

    @pgq.entrypoint("noop")  # type: ignore[untyped-decorator,unused-ignore]
    async def noop(job: object) -> None:
        now = time.monotonic()
        seen["began"] = seen["began"] or now
        seen["jobs"] += 1
        seen["ended"] = now

    print("ready", flush=True)
    if sys.stdin.readline() != "go\n":
        return None
    cpu = time.process_time()
    await pgq.qm.run(
        batch_size=BATCH, mode=QueueExecutionMode.drain, dequeue_timeout=timedelta(milliseconds=100)
    )
    return {**seen, "cpu_s": time.process_time() - cpu}


if __name__ == "__main__":
    report = uvloop.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0))
    if report is not None:
        print(json.dumps(report), flush=True)
