"""The `queues` and `tasks` facets."""

from collections.abc import Mapping, Sequence

import msgspec

from tidemill.engine.shared.checks import check_entries, check_number, check_pause, check_samples
from tidemill.engine.shared.codes import unknown_task
from tidemill.engine.shared.queue_layers import (
    StoredQueue,
    Work,
    change_of,
    check_app,
    check_declare,
    check_reset,
    check_set,
    check_version,
    declaring,
    encode_options,
    info_of,
    overriding,
    resetting,
    retiring,
)
from tidemill.engine.shared.records import with_pause, without_pause
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.cluster import stats
from tidemill.engines.sqlite.cluster.catalogue import KnownQueue
from tidemill.engines.sqlite.db.store import StoreSession
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.engines.sqlite.order import gates, lanes
from tidemill.model.errors import UnknownQueue
from tidemill.model.event import OPTIONS_TOPIC
from tidemill.model.queues.layers import Declaration, Fields
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.stats.sample import QueueSample
from tidemill.model.time import Instant
from tidemill.model.view import QueueInfo, TaskEntry

SQL = load_statements("tidemill.engines.sqlite", "queues")

_entry = msgspec.json.Decoder(TaskEntry).decode
_encode = msgspec.json.Encoder().encode


class SqliteQueues:
    """See `tidemill.engine.protocol.QueuesFacet`."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def declare(
        self, app: str, declarations: Mapping[str, Declaration], *, now: Instant | None = None
    ) -> None:
        check_declare(app, declarations)

        def work(step: Step) -> None:
            for name, each in declarations.items():
                step.catalogue.named(name, step.now)
                _change(step, name, declaring(app, each), "declare", "")

        await self._session.write(work, now)

    async def retire(
        self, name: str, app: str, *, declared_at: Instant, by: str = "", now: Instant | None = None
    ) -> bool:
        check_pause(name, by)
        check_app(app)
        check_number(declared_at, "declared_at")
        return await self._session.write(
            lambda step: _change(step, name, retiring(app, declared_at), "retire declaration", by), now
        )

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
        check_set(name, fields, by, why, version)

        def work(step: Step) -> None:
            change = overriding(fields, by=by, why=why, at=step.now)
            _change(step, name, change, "set queue", by, version)

        await self._session.write(work, now)

    async def reset(
        self,
        name: str,
        fields: Sequence[str] | None = None,
        *,
        by: str = "",
        version: int | None = None,
        now: Instant | None = None,
    ) -> None:
        check_reset(name, fields, by, version)
        await self._session.write(
            lambda step: _change(step, name, resetting(fields), "reset queue", by, version), now
        )

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

    async def sample(
        self, minute: Instant, samples: Sequence[QueueSample], *, now: Instant | None = None
    ) -> bool:
        check_samples(minute, samples)
        return await self._session.write(lambda step: stats.sample(step, minute, samples), now)

    async def list(self) -> "list[QueueInfo]":
        found = await self._session.read(lambda db: db.execute(SQL.list).fetchall())
        return [
            info_of(name, StoredQueue(options, layers, version), created_at, (paused_at, by, why))
            for name, options, layers, version, created_at, paused_at, by, why in found
        ]


class SqliteTasks:
    """See `tidemill.engine.protocol.TasksFacet`."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def publish(self, entries: Sequence[TaskEntry], *, now: Instant | None = None) -> None:
        check_entries(entries)
        rows = [(entry.name, _encode(without_pause(entry))) for entry in entries]

        def work(step: Step) -> None:
            step.db.executemany(SQL.publish, rows)

        await self._session.write(work, now)

    async def list(self) -> "list[TaskEntry]":
        found = await self._session.read(lambda db: db.execute(SQL.tasks).fetchall())
        return [with_pause(_entry(entry), *pause) for entry, *pause in found]

    async def pause(self, name: str, *, by: str = "", why: str = "", now: Instant | None = None) -> None:
        check_pause(name, by, why)

        def work(step: Step) -> None:
            if not _is_paused(step, name):
                step.db.execute(SQL.pause_task, (step.now, by, why, name))
                step.catalogue.changed()
                step.audit(by, "pause task", name, why)

        await self._session.write(work, now)

    async def resume(self, name: str, *, by: str = "", now: Instant | None = None) -> None:
        check_pause(name, by)

        def work(step: Step) -> None:
            if _is_paused(step, name):
                step.db.execute(SQL.resume_task, (name,))
                step.catalogue.changed()
                for (queue,) in step.db.execute(lanes.SQL.queues_aside, (name,)).fetchall():
                    step.signal_ready(queue)
                step.audit(by, "resume task", name)

        await self._session.write(work, now)


def _is_paused(step: Step, name: str) -> bool:
    row = step.db.execute(SQL.task_pause, (name,)).fetchone()
    if row is None:
        raise unknown_task(name)
    return row[0] is not None


def _change(step: Step, name: str, work: Work, action: str, by: str, version: int | None = None) -> bool:
    queue = _known(step, name)
    stored = StoredQueue(*step.db.execute(SQL.layers, (queue.pk,)).fetchone())
    change = change_of(name, stored, work)
    if change is None:
        return False
    check_version(name, stored, version)
    step.db.execute(SQL.set_layers, (change.layers, queue.pk))
    if change.options is not None:
        _put_in_force(step, queue, change.options)
    step.audit(by, action, name, change.detail)
    return True


def _put_in_force(step: Step, before: KnownQueue, options: QueueOptions) -> None:
    step.db.execute(SQL.set_options, (encode_options(options), before.pk))
    step.db.execute(SQL.options_changed)
    step.catalogue.changed()
    lanes.reshape(step, before.pk, before.options, options)
    gates.rates_changed(step, before.pk, before.options, options)
    if before.limited or step.catalogue.by_pk[before.pk].limited:
        gates.reopen_all(step, before.pk)
    step.signal_ready(before.pk)
    step.signal(OPTIONS_TOPIC)


def _known(step: Step, name: str) -> KnownQueue:
    queue = step.catalogue.by_name.get(name)
    if queue is None:
        known = ", ".join(sorted(step.catalogue.by_name)[:10]) or "none yet"
        raise UnknownQueue(f"there is no queue {name!r}; there are: {known}")
    return queue
