"""The `queues` and `tasks` facets: what is known of queues, and of the tasks that workers have."""

from collections.abc import Sequence
from typing import Protocol

from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import Instant
from tidemill.model.view import (
    QueueInfo,
    TaskEntry,
)


class QueuesFacet(Protocol):
    """For operators, and for the code that declares queues."""

    async def configure(
        self, name: str, options: QueueOptions, *, by: str = "", now: Instant | None = None
    ) -> None:
        """Replace a queue's options; creates the queue. In force for the next claim anywhere, also
        for jobs that wait or run already; what the log of a rate still holds counts by the new window.
        A repeat changes nothing."""
        ...

    async def list(self) -> "list[QueueInfo]":
        """All queues, by name."""
        ...

    async def pause(self, name: str, *, by: str = "", why: str = "", now: Instant | None = None) -> None:
        """No claim takes from it; what runs goes on. `UnknownQueue` if there is none. A repeat keeps
        the first pause's time and reason."""
        ...

    async def resume(self, name: str, *, by: str = "", now: Instant | None = None) -> None:
        """End a pause. `UnknownQueue` if there is none; a repeat changes nothing."""
        ...


class TasksFacet(Protocol):
    """The catalogue of tasks that workers publish."""

    async def publish(self, entries: Sequence[TaskEntry], *, now: Instant | None = None) -> None:
        """Add or replace entries by name."""
        ...

    async def list(self) -> "list[TaskEntry]":
        """All entries, by name."""
        ...
