"""Dramatiq, on Redis and on RabbitMQ: `dramatiq dramatiq_jobs -p 2 -t 8`.

https://dramatiq.io/guide.html#workers: processes and threads are the two knobs; eight threads are the
default. https://dramatiq.io/reference.html: `dramatiq_queue_prefetch` is how many messages a process takes
ahead, by default two for each thread; the worker gets a larger one, as no-ops are short. Acknowledged when
done, the default."""
# mypy: disable-error-code="import-not-found, import-untyped, untyped-decorator"

import time
from typing import Any

import dramatiq
import errands
import ledger


def _broker() -> Any:
    if errands.place().startswith("amqp"):
        from dramatiq.brokers.rabbitmq import RabbitmqBroker

        return RabbitmqBroker(url=errands.place(), confirm_delivery=True)
    from dramatiq.brokers.redis import RedisBroker

    return RedisBroker(url=errands.place())


broker = _broker()
dramatiq.set_broker(broker)


@dramatiq.actor
def noop(turn: int, payload: str) -> None:
    ledger.noop(turn)


@dramatiq.actor
def stamp(job: int) -> None:
    ledger.event("stamp", job)


@dramatiq.actor
def slow(job: int) -> None:
    ledger.event("begin", job)
    time.sleep(ledger.SLOW_S)
    ledger.event("end", job)


TASKS = {"noop": noop, "stamp": stamp, "slow": slow}


class Jobs:
    many = None

    async def setup(self) -> None: ...

    async def one(self, task: str, *arguments: object) -> None:
        TASKS[task].send(*arguments)

    async def left(self) -> int:
        if hasattr(broker, "client"):
            return sum(int(broker.client.hlen(f"dramatiq:{name}.msgs")) for name in ("default", "default.DQ"))
        ready, delayed, _ = broker.get_queue_message_counts("default")
        return int(ready + delayed)

    async def close(self) -> None:
        broker.close()
