"""What the scripts ask of a queue's options, worked out, so that no script reads JSON."""

import msgspec

from tidemill.engine.shared.flat_options import FlatLimit, flat_options
from tidemill.model.queues.queue import Keep, QueueOptions

_encode = msgspec.json.Encoder(order="sorted").encode

NONE = -1
KEEPS = Keep(age=86_400.0, count=10_000)
"""Of completed and cancelled jobs, where a queue says nothing: memory is dearer than a disk."""


def flat(options: QueueOptions) -> dict[str, object]:
    """The record of a queue; the scripts add c created_at, pa paused_at, pb paused_by, pw paused_why."""
    said = flat_options(options, KEEPS)
    return {
        "o": _encode(options).decode(),
        "keyed": options.keyed,
        "own": _limit(said.own),
        "key": _limit(said.per_key or FlatLimit()) if said.key_limited else None,
        "keys": {key: _limit(limit) for key, limit in said.limits.items()},
        "tasks": {task: _limit(limit) for task, limit in said.tasks.items()},
        "starts": None if said.starts is None else _encode(said.starts).decode(),
        "weights": options.weights,
        "body": options.keep_body,
        "ages": list(map(_or_none, said.keep_ages)),
        "counts": list(map(_or_none, said.keep_counts)),
    }


def _limit(limit: FlatLimit | None) -> list[int] | None:
    return None if limit is None else list(map(_or_none, limit))


def _or_none(number: int | None) -> int:
    return NONE if number is None else number
