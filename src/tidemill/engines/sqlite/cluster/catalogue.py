"""The queues as this process knows them, read again when any process has changed one."""

import sqlite3
from typing import NamedTuple

from tidemill.engine.shared.flat_options import flat_options
from tidemill.engine.shared.queue_layers import encode_options, report
from tidemill.model.queues.layers import read_stored
from tidemill.model.queues.queue import KEEP_ENDED, QueueOptions
from tidemill.model.queues.starts import StartRules
from tidemill.model.time import Instant

_CHECK = """SELECT config, EXISTS (SELECT 1 FROM watch), EXISTS (SELECT 1 FROM ended_parent),
    EXISTS (SELECT 1 FROM unique_key WHERE at_start = 1) FROM counter"""
DEFAULT_OPTIONS = encode_options(QueueOptions())


class KnownQueue(NamedTuple):
    """A queue, with what the hot paths ask of its options worked out."""

    pk: int
    name: str
    options: QueueOptions
    paused: bool
    shaped: bool
    """Lanes have groups: keyed, or with limited tasks."""
    limited: bool
    """Some gate may hold jobs back."""
    starts: StartRules | None
    """When jobs under a rate start; None: none are."""


class Catalogue:
    """All queues by name and by pk, valid inside the transaction in which it was refreshed."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._config: int | None = None
        self.by_name: dict[str, KnownQueue] = {}
        self.by_pk: dict[int, KnownQueue] = {}
        self.paused_tasks: frozenset[str] = frozenset()
        self.lanes: set[tuple[int, int, int]] = set()
        """Lanes without a group that are known to be announced: (queue, priority, kind). They go only
        when a queue is reshaped, which counts as a change of it."""
        self.watched = False
        """Some caller waits for some job."""
        self.parents_ended = False
        """Some parent ended and its children have not all been updated."""
        self.freed_at_start = False
        """Some job holds a unique key until it starts."""

    def refresh(self) -> None:
        """Read the queues again if they changed. The same statement checks for what is rarely there (watched
        jobs, ended parents, some unique keys): a statement of its own that finds nothing costs 5 us."""
        config, self.watched, self.parents_ended, self.freed_at_start = self._db.execute(_CHECK).fetchone()
        if config != self._config:
            rows = self._db.execute("SELECT pk, name, options, paused_at FROM queue").fetchall()
            queues = [_queue(*row) for row in rows]
            self.by_name = {queue.name: queue for queue in queues}
            self.by_pk = {queue.pk: queue for queue in queues}
            paused = self._db.execute("SELECT name FROM task WHERE paused_at IS NOT NULL")
            self.paused_tasks = frozenset([name for (name,) in paused])
            self.lanes.clear()
            self._config = config

    def forget(self) -> None:
        """What was read may have been rolled back."""
        self._config = None
        self.lanes.clear()

    def changed(self) -> None:
        """This transaction changed a queue, or the pause of a task."""
        self._db.execute("UPDATE counter SET config = config + 1")
        self.refresh()

    def named(self, name: str, now: Instant) -> KnownQueue:
        """The queue of this name, made with default options if it is new."""
        queue = self.by_name.get(name)
        if queue is None:
            self._db.execute(
                "INSERT INTO queue (name, options, created_at) VALUES (?, ?, ?)", (name, DEFAULT_OPTIONS, now)
            )
            self.changed()
            queue = self.by_name[name]
        return queue


def _queue(pk: int, name: str, options_json: bytes, paused_at: int | None) -> KnownQueue:
    options, problems = read_stored(options_json)
    report(name, problems)
    flat = flat_options(options, KEEP_ENDED)
    return KnownQueue(
        pk=pk,
        name=name,
        options=options,
        paused=paused_at is not None,
        shaped=flat.shaped,
        limited=flat.limited,
        starts=flat.starts,
    )
