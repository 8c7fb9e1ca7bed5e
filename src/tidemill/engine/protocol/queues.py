"""The `queues` and `tasks` facets: what is known of queues, and of the tasks that workers have."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from tidemill.model.queues.layers import Declaration, Fields
from tidemill.model.stats.sample import QueueSample
from tidemill.model.time import Instant
from tidemill.model.view import (
    QueueInfo,
    TaskEntry,
)


class QueuesFacet(Protocol):
    """For operators, and for the code that declares queues.

    A queue's options have two layers (`model.queues.layers`): what apps declare, and what operators set over
    it. Both are kept, with a version of the queue that grows with every change of either. A change is
    in force for the next claim anywhere, also for jobs that wait or run already; what the log of a rate still
    holds counts by the new window. If the options in force stay as they are, no claim waits for the change.
    If they change, `OPTIONS_TOPIC` and the queue's ready topic are signalled, and `HeartbeatReply.options` is
    another number from then on."""

    async def declare(
        self, app: str, declarations: Mapping[str, Declaration], *, now: Instant | None = None
    ) -> None:
        """An app says this of these queues; creates those that are new. Each replaces what the app said of
        that queue, unless code that started later has spoken (`declared_at`). A step for each queue. A repeat
        changes nothing. `BadInput` for a field that does not exist or cannot be: then nothing was changed."""
        ...

    async def retire(
        self, name: str, app: str, *, declared_at: Instant, by: str = "", now: Instant | None = None
    ) -> bool:
        """No code of the app says anything of the queue any more: forget its declaration, if that is still
        the one of `declared_at`. False: it is not (it was declared again, or this is a repeat). The queue
        stays, with its jobs and overrides. `UnknownQueue` if there is none."""
        ...

    async def override(
        self,
        name: str,
        fields: Fields,
        *,
        by: str = "",
        why: str = "",
        version: int | None = None,
        now: Instant | None = None,
    ) -> None:
        """Set these fields over what is declared, until they are reset; other overrides stay.
        `UnknownQueue` if there is none; `BadInput` for a field that cannot be, or that contradicts what is in
        force. `version`: refuse with `QueueChanged` if the queue has another one. A repeat changes
        nothing."""
        ...

    async def reset(
        self,
        name: str,
        fields: Sequence[str] | None = None,
        *,
        by: str = "",
        version: int | None = None,
        now: Instant | None = None,
    ) -> None:
        """Remove these overrides, or all: what is declared counts again. Errors as of `override`. A repeat
        changes nothing."""
        ...

    async def list(self) -> "list[QueueInfo]":
        """All queues, by name, with both layers. An option that this release cannot read is left out, and
        named in `problems`: one queue never keeps a caller from the others."""
        ...

    async def pause(self, name: str, *, by: str = "", why: str = "", now: Instant | None = None) -> None:
        """No claim takes from it; what runs goes on. `UnknownQueue` if there is none. A repeat keeps
        the first pause's time and reason."""
        ...

    async def resume(self, name: str, *, by: str = "", now: Instant | None = None) -> None:
        """End a pause. `UnknownQueue` if there is none; a repeat changes nothing."""
        ...

    async def sample(
        self, minute: Instant, samples: Sequence[QueueSample], *, now: Instant | None = None
    ) -> bool:
        """Note how queues stood at the end of this minute (a whole one), for `inspect.stats`. False: the
        minute has samples already, of these queues or others, and nothing was changed (a repeat, or another
        controller was first). `BadInput` for a moment that is no whole minute."""
        ...


class TasksFacet(Protocol):
    """The catalogue of tasks that workers publish."""

    async def publish(self, entries: Sequence[TaskEntry], *, now: Instant | None = None) -> None:
        """Add or replace entries by name. A pause is no part of what is published, and stays."""
        ...

    async def list(self) -> "list[TaskEntry]":
        """All entries, by name, each with its pause."""
        ...

    async def pause(self, name: str, *, by: str = "", why: str = "", now: Instant | None = None) -> None:
        """No claim takes a job of this task, in any queue; what runs goes on. Its jobs stay ready, and keep
        their places: claims set aside those that they meet. `UnknownTask` if it has no entry. A repeat keeps
        the first pause's time and reason. Where the store has more than one writer, a claim that is under way
        may still take some. In the audit it is a "pause task"."""
        ...

    async def resume(self, name: str, *, by: str = "", now: Instant | None = None) -> None:
        """End a pause: its jobs are taken in their old order. Signals the queues where some stand aside.
        `UnknownTask` if it has no entry; a repeat changes nothing. In the audit it is a "resume task"."""
        ...
