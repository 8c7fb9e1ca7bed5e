"""The arguments of a script, and other edges of a call."""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from tidemill.engine.merging import has_unique
from tidemill.engine.shared.uniques import conflict_code, until_code
from tidemill.engines.redis.cluster.flat import flat
from tidemill.engines.redis.db.pack import encode
from tidemill.engines.redis.jobs.tail import inline, tails
from tidemill.model.jobs.job import NewJob
from tidemill.model.jobs.unique import UniqueKey
from tidemill.model.queues.queue import QueueOptions

_encode_json = msgspec.json.Encoder().encode

DEFAULTS = flat(QueueOptions())
"""A queue as it comes into being by its first job."""
PACKED_DEFAULTS = encode(DEFAULTS)


LaneRange = tuple[str, int, int]
"""Queue, priority, and how many jobs go to that lane one after another."""


class ScriptCall:
    """What is sent: names and numbers in MessagePack, bytes beside it, because Redis's reader of MessagePack
    knows no binary type."""

    def __init__(self, **values: Any) -> None:
        self.values: dict[str, Any] = values
        self.blobs: list[bytes] = []

    def encoded(self) -> bytes:
        return encode(self.values)

    def add(self, *blobs: bytes) -> None:
        self.blobs += blobs

    def jobs(self, jobs: Sequence[NewJob]) -> list[tuple[object, ...]]:
        """New jobs as `store.lua` reads them; their bytes are added."""
        self.values["defaults"] = DEFAULTS
        if has_unique(jobs):
            self.values["unique"] = True
        return [self._job(job) for job in jobs]

    def ranges(self, jobs: Iterable[NewJob]) -> list[LaneRange]:
        """New jobs that may run at once, as `enqueue.lua` reads them. Their bytes are added."""
        found: list[LaneRange] = []
        apart: dict[int, bytes] = {}
        queue, priority, first, number, add = "", -1, 1, 0, self.blobs.extend
        add((PACKED_DEFAULTS,))
        for number, (job, tail) in enumerate(tails(jobs), 1):
            if job.queue != queue or job.priority != priority:
                if number > first:
                    found.append((queue, priority, number - first))
                queue, priority, first = job.queue, job.priority, number
            if inline(job.body):
                add((job.id, tail + job.body))
            else:
                add((job.id, tail))
                apart[number] = job.body
        add(apart.values())
        self.values["apart"] = list(apart)
        return [*found, (queue, priority, number + 1 - first)]

    def _job(self, job: NewJob) -> tuple[object, ...]:
        self.blobs += (job.id, job.body)
        if job.headers is not None:
            self.blobs.append(job.headers)
        self.blobs += job.after
        return (
            job.task, job.queue, job.priority, job.codec, job.headers is not None, job.key or None,
            job.delay, job.at, job.expires, job.timeout,
            None if job.retry is None else _encode_json(job.retry).decode(), job.attempts, job.on_dead,
            job.schedule, len(job.after), job.parent_died if job.after else None,
            None if job.unique is None else _unique(job.unique),
        )  # fmt: skip


def _unique(unique: UniqueKey) -> tuple[object, ...]:
    """As `unique.lua` reads it."""
    return unique.key, until_code(unique), unique.period, conflict_code(unique), unique.latest
