"""RQ: `rq worker --worker-class rq.worker.SimpleWorker bench`, two such processes.

https://github.com/rq/rq/blob/master/docs/benchmark.md: for very short jobs `SimpleWorker`, which does not
fork for each. https://python-rq.org/docs/: `enqueue_many` in a pipeline; a result that nobody asks for is
not kept (`result_ttl=0`)."""
# mypy: disable-error-code="import-not-found, import-untyped"

import time

import errands
import ledger
from redis import Redis
from rq import Queue


def noop(turn: int, payload: str) -> None:
    ledger.noop(turn)


def stamp(job: int) -> None:
    ledger.event("stamp", job)


def slow(job: int) -> None:
    ledger.event("begin", job)
    time.sleep(ledger.SLOW_S)
    ledger.event("end", job)


TASKS = {"noop": noop, "stamp": stamp, "slow": slow}


class Jobs:
    def __init__(self) -> None:
        self._queue = Queue("bench", connection=Redis.from_url(errands.place()))

    async def setup(self) -> None: ...

    async def one(self, task: str, *arguments: object) -> None:
        self._queue.enqueue(TASKS[task], args=arguments, result_ttl=0)

    async def many(self, turn: int, count: int) -> None:
        arguments = (turn, errands.PAYLOAD)
        self._queue.enqueue_many(
            [Queue.prepare_data(noop, args=arguments, result_ttl=0) for _ in range(count)]
        )

    async def left(self) -> int:
        registries = (self._queue.started_job_registry, self._queue.scheduled_job_registry)
        return int(self._queue.count) + sum(
            len(registry.get_job_ids(cleanup=False)) for registry in registries
        )

    async def close(self) -> None: ...
