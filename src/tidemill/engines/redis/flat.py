"""What the scripts ask of a queue's options, worked out, so that no script reads JSON."""

import msgspec

from tidemill.model.queue import Keep, Limit, QueueOptions
from tidemill.model.time import span_of

_encode = msgspec.json.Encoder(order="sorted").encode

NONE = -1
KEEPS = Keep(age=86_400.0, count=10_000)
"""Of completed and cancelled jobs, where a queue says nothing: memory is dearer than a disk."""


def flat(options: QueueOptions) -> dict[str, object]:
    """The record of a queue; the scripts add c created_at, pa paused_at, pb paused_by, pw paused_why."""
    keeps = options.keeps(KEEPS)
    return {
        "o": _encode(options).decode(),
        "keyed": options.keyed,
        "own": _limit(options.own),
        "key": _limit(options.per_key),
        "tasks": {task: _limit(limit) for task, limit in options.per_task.items() if limit},
        "weights": options.weights,
        "body": options.keep_body,
        "ages": [_age(keep) for keep in keeps],
        "counts": [NONE if keep.count is None else keep.count for keep in keeps],
    }


def _limit(limit: Limit | None) -> list[int] | None:
    """Concurrency, count and window of the rate."""
    if not limit:
        return None
    rate = limit.rate
    return [
        NONE if limit.concurrency is None else limit.concurrency,
        NONE if rate is None else rate.count,
        NONE if rate is None else rate.window,
    ]


def _age(keep: Keep) -> int:
    return NONE if keep.age is None else span_of(keep.age)
