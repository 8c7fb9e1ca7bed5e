"""The arguments of a script, and other edges of a call."""

from collections.abc import Sequence
from typing import Any

import msgspec

from penstock.engines.redis.flat import flat
from penstock.model.errors import BadInput
from penstock.model.job import NewJob
from penstock.model.queue import QueueOptions

_encode = msgspec.msgpack.Encoder().encode
_encode_json = msgspec.json.Encoder().encode

DEFAULTS = flat(QueueOptions())
"""A queue as it comes into being by its first job."""


class Call:
    """What is sent: names and numbers in MessagePack, bytes beside it, because Redis's reader of MessagePack
    knows no binary type."""

    def __init__(self, **values: Any) -> None:
        self.values: dict[str, Any] = values
        self.blobs: list[bytes] = []

    def encoded(self) -> bytes:
        """The values; `BadInput` where one has no form (a lone surrogate, a number beyond 64 bits)."""
        try:
            return _encode(self.values)
        except (UnicodeError, OverflowError, TypeError) as error:
            raise BadInput(f"a value cannot be stored: {str(error)[:200]}") from None

    def add(self, *blobs: bytes) -> None:
        self.blobs += blobs

    def jobs(self, jobs: Sequence[NewJob]) -> list[tuple[object, ...]]:
        """New jobs as `store.lua` reads them; their bytes are added."""
        self.values["defaults"] = DEFAULTS
        return [self._job(job) for job in jobs]

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
        )  # fmt: skip
