"""The `queues` and `tasks` facets."""

from collections.abc import Sequence

import msgspec

from tidemill.engine.shared.checks import check_entries, check_pause, check_text
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.cluster.catalogue import KnownQueue, encode_options
from tidemill.engines.sqlite.db.store import StoreSession
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.engines.sqlite.order import gates, lanes
from tidemill.model.errors import UnknownQueue
from tidemill.model.names import check_queue
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import Instant
from tidemill.model.view import QueueInfo, TaskEntry

SQL = load_statements("tidemill.engines.sqlite", "queues")

_options = msgspec.json.Decoder(QueueOptions).decode
_entry = msgspec.json.Decoder(TaskEntry).decode
_encode = msgspec.json.Encoder().encode


class SqliteQueues:
    """See `tidemill.engine.protocol.QueuesFacet`."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def configure(
        self, name: str, options: QueueOptions, *, by: str = "", now: Instant | None = None
    ) -> None:
        check_queue(name)
        check_text(by, "by")
        await self._session.write(lambda step: _configure(step, name, options, by), now)

    async def pause(self, name: str, *, by: str = "", why: str = "", now: Instant | None = None) -> None:
        check_pause(name, by, why)

        def work(step: Step) -> None:
            queue = _known(step, name)
            if not queue.paused:
                step.db.execute(SQL.pause, (step.now, by, why, queue.pk))
                step.catalogue.changed()
                step.audit(by, "pause", name, why)

        await self._session.write(work, now)

    async def resume(self, name: str, *, by: str = "", now: Instant | None = None) -> None:
        check_pause(name, by)

        def work(step: Step) -> None:
            queue = _known(step, name)
            if queue.paused:
                step.db.execute(SQL.resume, (queue.pk,))
                step.catalogue.changed()
                step.signal_ready(queue.pk)
                step.audit(by, "resume", name)

        await self._session.write(work, now)

    async def list(self) -> "list[QueueInfo]":
        found = await self._session.read(lambda db: db.execute(SQL.list).fetchall())
        return [
            QueueInfo(
                name=name,
                options=_options(options),
                created_at=created_at,
                paused_at=paused_at,
                paused_by=paused_by,
                paused_why=paused_why,
            )
            for name, options, created_at, paused_at, paused_by, paused_why in found
        ]


class SqliteTasks:
    """See `tidemill.engine.protocol.TasksFacet`."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def publish(self, entries: Sequence[TaskEntry], *, now: Instant | None = None) -> None:
        check_entries(entries)
        rows = [(entry.name, _encode(entry)) for entry in entries]

        def work(step: Step) -> None:
            step.db.executemany(SQL.publish, rows)

        await self._session.write(work, now)

    async def list(self) -> "list[TaskEntry]":
        found = await self._session.read(lambda db: db.execute(SQL.tasks).fetchall())
        return [_entry(entry) for (entry,) in found]


def _configure(step: Step, name: str, options: QueueOptions, by: str) -> None:
    new = name not in step.catalogue.by_name
    before = step.catalogue.named(name, step.now)
    if before.options == options:
        if new:
            step.audit(by, "configure", name)
        return
    step.db.execute(SQL.configure, (encode_options(options), before.pk))
    step.catalogue.changed()
    lanes.reshape(step, before.pk, before.options, options)
    gates.rates_changed(step, before.pk, before.options, options)
    if before.limited or step.catalogue.by_pk[before.pk].limited:
        gates.reopen_all(step, before.pk)
    step.signal_ready(before.pk)
    step.audit(by, "configure", name, encode_options(options).decode())


def _known(step: Step, name: str) -> KnownQueue:
    queue = step.catalogue.by_name.get(name)
    if queue is None:
        known = ", ".join(sorted(step.catalogue.by_name)[:10]) or "none yet"
        raise UnknownQueue(f"there is no queue {name!r}; there are: {known}")
    return queue
