"""The options of a queue as people write them, in `app.queue(...)` and in `app.queues.set(...)`.

Every form that is accepted works: a concurrency is a number, a rate is a text such as "100/m" or a `Rate`,
and a limit is either of them or a `Limit` of both. Anything else is refused at the line where it stands.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from tidemill.app.accepting import read_limit, read_mapping, read_retry, yes_or_no
from tidemill.app.enqueueing.options import read_keep, read_timeout
from tidemill.model.names import check_task
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.model.time import SECOND


def read_queue_options(said: Mapping[str, Any]) -> dict[str, Any]:
    """What was written, by the names of `QueueOptions`. None stays: it says "no limit"."""
    read: dict[str, Any] = {}
    for name in ("keep_completed", "keep_cancelled"):  # `keep` is short for both; each is stronger
        if "keep" in said:
            read[name] = read_keep("keep", said["keep"])
    for name, value in said.items():
        if name != "keep":
            read[name] = None if value is None else READ[name](value)
    return read


def _concurrency(value: Any) -> int:
    Limit(concurrency=value)
    number: int = value
    return number


def _limit(name: str) -> Callable[[Any], Limit | None]:
    return lambda value: read_limit(name, value)


def _per_task(value: Any) -> dict[str, Limit]:
    given = read_mapping("per_task", value, "tasks and limits")
    named = {getattr(task, "name", task): limit for task, limit in given.items()}
    return {check_task(task): read_limit("per_task", limit) or Limit() for task, limit in named.items()}


def _limits(value: Any) -> dict[str, Limit]:
    given = read_mapping("limits", value, "keys and limits")
    return {key: read_limit("limits", limit) or Limit() for key, limit in given.items()}


def _timeout(value: float | timedelta) -> float:
    return read_timeout(value) / SECOND


READ: dict[str, Callable[[Any], Any]] = {
    "concurrency": _concurrency,
    "rate": Rate.parse,
    "per_key": _limit("per_key"),
    "limits": _limits,
    "per_task": _per_task,
    "per_worker": _limit("per_worker"),
    "fair_by": lambda value: QueueOptions(fair_by=value).fair_by,
    "weights": lambda value: dict(read_mapping("weights", value, "keys and weights")),
    "timeout": _timeout,
    "retry": read_retry,
    "keep_completed": lambda value: read_keep("keep_completed", value),
    "keep_dead": lambda value: read_keep("keep_dead", value),
    "keep_cancelled": lambda value: read_keep("keep_cancelled", value),
    "keep_body": lambda value: yes_or_no("keep_body", value),
}
