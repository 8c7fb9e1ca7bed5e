"""Celery, on Redis and on RabbitMQ: `celery -A celery_jobs worker`.

https://docs.celeryq.dev/en/stable/userguide/optimizing.html: for many short tasks a large prefetch
multiplier, 64 or 128.
https://docs.celeryq.dev/en/stable/userguide/tasks.html#ignore-results-you-don-t-want: no results where
nobody asks for them.
https://docs.celeryq.dev/en/stable/userguide/configuration.html#worker-disable-rate-limits. The worker,
https://docs.celeryq.dev/en/stable/userguide/workers.html: two prefork processes, without gossip, mingle
and heartbeat, which a single worker does not need. Acknowledged on receipt, the default (`task_acks_late`
is off)."""
# mypy: disable-error-code="import-not-found, import-untyped, untyped-decorator"

import time

import errands
import ledger
from celery import Celery

app = Celery("bench", broker=errands.place())
app.conf.update(
    worker_prefetch_multiplier=128,
    task_ignore_result=True,
    worker_disable_rate_limits=True,
    broker_connection_retry_on_startup=True,
)


@app.task(name="noop")
def noop(turn: int, payload: str) -> None:
    ledger.noop(turn)


@app.task(name="stamp")
def stamp(job: int) -> None:
    ledger.event("stamp", job)


@app.task(name="slow")
def slow(job: int) -> None:
    ledger.event("begin", job)
    time.sleep(ledger.SLOW_S)
    ledger.event("end", job)


TASKS = {"noop": noop, "stamp": stamp, "slow": slow}


class Jobs:
    many = None  # a group is sent one by one

    async def setup(self) -> None: ...

    async def one(self, task: str, *arguments: object) -> None:
        TASKS[task].delay(*arguments)

    async def left(self) -> int:
        with app.connection_for_read() as connection:
            channel = connection.default_channel
            if hasattr(channel, "client"):  # Redis
                return int(channel.client.llen("celery") + channel.client.hlen("unacked"))
            return int(channel.queue_declare("celery", passive=True).message_count)

    async def close(self) -> None:
        app.close()
