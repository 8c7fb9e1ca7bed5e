"""What follows when a job dies that has a handler: in the same step a job of the handler's task is stored.

It carries what was known of the dead job at that moment, so it needs nothing that retention may delete.
"""

from typing import Any

import msgspec

from tidemill.model.ids import JobId, handler_id, show_id
from tidemill.model.jobs.job import Failure, NewJob
from tidemill.model.jobs.retry import Retry
from tidemill.model.view import TaskEntry

PLAIN_CODEC = 1

_call = msgspec.json.Decoder(tuple[list[Any], dict[str, Any]]).decode


class DeadJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that died, as its handler is given it."""

    id: str
    task: str
    queue: str
    key: str | None = None
    attempts: int = 0
    """That it had used up; 0 if it was never tried."""
    crashes: int = 0
    replays: int = 0
    failure: Failure
    """Its last one: `kind` says what it died of, `error` and `message` are those of its exception."""
    body: str | None = None
    """Its arguments as they are stored, the JSON of `[args, kwargs]`; None if that is no text. Read only when
    a handler asks for them: it may be what the job died of."""

    @property
    def args(self) -> list[Any]:
        """Its arguments in order, as JSON has them; none if they cannot be read."""
        return self._read()[0]

    @property
    def kwargs(self) -> dict[str, Any]:
        """Its arguments by name, as JSON has them; none if they cannot be read."""
        return self._read()[1]

    def _read(self) -> tuple[list[Any], dict[str, Any]]:
        try:
            return _call(self.body or "")
        except (ValueError, RecursionError):
            return [], {}


class Death(msgspec.Struct, frozen=True, kw_only=True):
    """What the handler's job is made of."""

    id: JobId
    task: str
    queue: str
    key: str | None
    attempts: int
    crashes: int
    replays: int
    failure: Failure
    codec: int
    body: bytes


def handler_job(name: str, entry: TaskEntry | None, death: Death) -> NewJob:
    """The job of the handler's task: its queue, priority, timeout and attempts are those of its entry in the
    catalogue; without one it stands in the queue of the dead job. Its key is the dead job's. Its id may be
    taken: see `handler_id`."""
    entry = entry or TaskEntry(name=name, queue=death.queue)
    dead_job = DeadJob(
        id=show_id(death.id),
        task=death.task,
        queue=death.queue,
        key=death.key,
        attempts=death.attempts,
        crashes=death.crashes,
        replays=death.replays,
        failure=said(death.failure),
        body=_text(death),
    )
    return NewJob(
        id=handler_id(death.id, death.replays),
        task=name,
        queue=entry.queue,
        priority=entry.priority,
        key=death.key,
        timeout=entry.timeout,
        attempts=(entry.retry or Retry()).attempts,
        body=msgspec.json.encode(([dead_job], {})),
        codec=PLAIN_CODEC,
    )


def _text(death: Death) -> str | None:
    """The body, if it is a text; an encrypted one is none."""
    if death.codec != PLAIN_CODEC:
        return None
    try:
        return death.body.decode()
    except UnicodeDecodeError:
        return None


def said(failure: Failure) -> Failure:
    """What the failure itself says, without what the engine filled in."""
    return Failure(
        kind=failure.kind,
        error=failure.error,
        message=failure.message,
        traceback=failure.traceback,
        fingerprint=failure.fingerprint,
    )
