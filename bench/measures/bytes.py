"""What a job takes of a Redis's memory, by its state: `python -m bench.measures.bytes [JOBS]`.

A private server without a file, emptied before each kind; the answer is the growth of `used_memory`, divided
by the jobs. It counts everything: records, order, counts, and the slack of tables that have grown in steps.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from functools import partial

from bench.load import BODY
from tests.servers.redis import RedisServer
from tidemill.cli.bench.workers import declare
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import Failure, NewJob
from tidemill.model.jobs.run import ClaimRequest, Completed, Failed, Outcome, Settlement, Want
from tidemill.model.member import MemberInfo
from tidemill.model.queues.queue import Keep, QueueOptions
from tidemill.model.time import DAY, Span

JOBS, BULK = 100_000, 1_000
QUEUE = "q"
RESULT = b'{"sent": true}'
FAILURE = Failed(
    failure=Failure(kind="error", error="builtins.ValueError", message="no", traceback="x" * 1_024),
    retry_in=None,
)

Fill = Callable[[Engine, int], Awaitable[None]]


async def enqueued(engine: Engine, count: int, *, delay: Span = 0, body: bytes = BODY) -> None:
    """Jobs that wait."""
    for _ in range(0, count, BULK):
        await engine.jobs.enqueue(
            [NewJob(id=new_id(), task="shop.send", queue=QUEUE, body=body, delay=delay) for _ in range(BULK)]
        )


async def ended(
    engine: Engine, count: int, *, options: QueueOptions, outcome: Outcome | None, body: bytes = BODY
) -> None:
    """Jobs that were claimed and have ended so; None: that still run."""
    member, claimant = MemberInfo(id=new_id(), name="bench:1"), new_id()
    await declare(engine, QUEUE, options)
    await engine.members.heartbeat(member)
    for number in range(1, count // BULK + 1):
        await enqueued(engine, BULK, body=body)
        claim = await engine.jobs.claim(
            ClaimRequest(member=member.id, claimant=claimant, number=number, wants=(Want(QUEUE),), most=BULK)
        )
        assert len(claim.jobs) == BULK
        if outcome is not None:
            await engine.jobs.settle(
                [Settlement(id=job.id, fence=job.fence, outcome=outcome, ran=1_000) for job in claim.jobs]
            )


WHOLE, SMALL = QueueOptions(), QueueOptions(keep_body=False)
DONE = Completed(result=RESULT)
KINDS: dict[str, Fill] = {
    "queued": enqueued,
    "queued, empty payload": partial(enqueued, body=b"[[],{}]"),
    "scheduled": partial(enqueued, delay=DAY),
    "running": partial(ended, options=WHOLE, outcome=None),
    "completed, with payload and result": partial(ended, options=WHOLE, outcome=DONE),
    "completed, `keep_body=False`": partial(ended, options=SMALL, outcome=DONE),
    "completed, `Keep(count=0)` (for an hour)": partial(
        ended, options=QueueOptions(keep_completed=Keep(count=0)), outcome=DONE
    ),
    "dead, with a failure of 1 KiB": partial(ended, options=WHOLE, outcome=FAILURE),
}


async def measure(server: RedisServer, jobs: int) -> dict[str, float]:
    """Bytes a job of each kind."""
    figures = {}
    for kind, fill in KINDS.items():
        server.command("FLUSHALL", "SYNC")
        engine = await connect(server.url())
        await fill(engine, BULK)  # tables, scripts and buffers are there
        before = used(server)
        await fill(engine, jobs)
        figures[kind] = (used(server) - before) / jobs
        await engine.close()
    return figures


def used(server: RedisServer) -> int:
    for line in server.command("INFO", "memory").decode().splitlines():
        if line.startswith("used_memory:"):
            return int(line.partition(":")[2])
    raise RuntimeError("the server does not tell what it uses")


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else JOBS
    server = RedisServer(settings={"appendonly": "no"}).start()
    try:
        figures = asyncio.run(measure(server, jobs))
    finally:
        server.close()
    print(f"{jobs:,} jobs, payload {len(BODY)} bytes, result {len(RESULT)} bytes\n")
    print("| a job that is | bytes |\n|---|--:|")
    for kind, size in figures.items():
        print(f"| {kind} | {size:,.0f} |")


if __name__ == "__main__":
    main()
