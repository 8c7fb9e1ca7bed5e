"""The reference for tasks: the catalogue, and pauses."""

from collections.abc import Sequence

import msgspec

from tidemill.model.errors import UnknownTask
from tidemill.model.time import Instant
from tidemill.model.view import TaskEntry
from tidemill.testing.contract.reference.store import ReferenceStore


class ReferenceTasks:
    """What workers publish, and what operators do to it."""

    def __init__(self, store: ReferenceStore) -> None:
        self._store = store

    def publish(self, entries: Sequence[TaskEntry]) -> None:
        tasks = self._store.tasks
        for entry in entries:
            tasks[entry.name] = self._as(entry, tasks.get(entry.name, entry))

    def pause(self, name: str, *, by: str, why: str, now: Instant) -> None:
        """The first pause stays as it is."""
        entry = self._known(name)
        if entry.paused_at is None:
            paused = msgspec.structs.replace(entry, paused_at=now, paused_by=by, paused_why=why)
            self._store.tasks[name] = paused
            self._store.once_paused.add(name)

    def resume(self, name: str) -> None:
        entry = self._known(name)
        self._store.tasks[name] = msgspec.structs.replace(entry, paused_at=None, paused_by="", paused_why="")

    @staticmethod
    def _as(entry: TaskEntry, paused: TaskEntry) -> TaskEntry:
        return msgspec.structs.replace(
            entry, paused_at=paused.paused_at, paused_by=paused.paused_by, paused_why=paused.paused_why
        )

    def _known(self, name: str) -> TaskEntry:
        if name not in self._store.tasks:
            raise UnknownTask(name)
        return self._store.tasks[name]
