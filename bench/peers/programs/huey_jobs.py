"""Huey, on Redis and on SQLite: `huey_consumer huey_jobs.huey -w 2 -k process -n`.

https://huey.readthedocs.io/en/latest/api.html: `RedisHuey` blocks on its list, the default, so that
nothing is polled; `SqliteHuey` has WAL and a sync with every commit, its defaults, which is the durability
of ours. https://huey.readthedocs.io/en/latest/consumer.html: two workers of type process; without the
periodic scheduler. On SQLite the consumer polls: a delay of 10 ms that does not grow (`-d 0.01 -m 0.01`)
instead of 100 ms growing to 10 s. A task that returns None stores no result. A job is taken out of the
queue before it runs: there is no other way."""
# mypy: disable-error-code="import-not-found, import-untyped, untyped-decorator"

import time

import errands
import ledger
from huey import RedisHuey, SqliteHuey

if errands.place().startswith("redis"):
    huey = RedisHuey("bench", url=errands.place())
else:
    huey = SqliteHuey("bench", filename=errands.place())


@huey.task()
def noop(turn: int, payload: str) -> None:
    ledger.noop(turn)


@huey.task()
def stamp(job: int) -> None:
    ledger.event("stamp", job)


@huey.task()
def slow(job: int) -> None:
    ledger.event("begin", job)
    time.sleep(ledger.SLOW_S)
    ledger.event("end", job)


TASKS = {"noop": noop, "stamp": stamp, "slow": slow}


class Jobs:
    many = None

    async def setup(self) -> None: ...

    async def one(self, task: str, *arguments: object) -> None:
        TASKS[task](*arguments)

    async def left(self) -> int:
        return int(huey.pending_count() + huey.scheduled_count())

    async def close(self) -> None: ...
