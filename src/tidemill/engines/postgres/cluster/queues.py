"""The `queues` and `tasks` facets."""

from collections.abc import Awaitable, Mapping, Sequence

import msgspec

from tidemill.engine.shared.checks import check_entries, check_number, check_pause, check_samples
from tidemill.engine.shared.codes import unknown_task
from tidemill.engine.shared.flat_options import FlatLimit, flat_options
from tidemill.engine.shared.queue_layers import (
    LayerChange,
    StoredQueue,
    Work,
    change_layers,
    check_app,
    check_declare,
    check_reset,
    check_set,
    declaring,
    encode_options,
    info_of,
    overriding,
    resetting,
    retiring,
)
from tidemill.engine.shared.records import with_pause, without_pause
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.model.errors import UnknownTask
from tidemill.model.queues.layers import Declaration, Fields
from tidemill.model.queues.queue import KEEP_ENDED, QueueOptions
from tidemill.model.stats.sample import QueueSample
from tidemill.model.time import Instant
from tidemill.model.view import QueueInfo, TaskEntry

SQL = load_statements("tidemill.engines.postgres", "queues")

_entry = msgspec.json.Decoder(TaskEntry).decode
_encode = msgspec.json.Encoder().encode


class PostgresQueues:
    """See `tidemill.engine.protocol.QueuesFacet`."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def declare(
        self, app: str, declarations: Mapping[str, Declaration], *, now: Instant | None = None
    ) -> None:
        check_declare(app, declarations)
        stored = await self._stored(*declarations)
        for name, each in sorted(declarations.items()):
            await self._change(
                name, declaring(app, each), "declare", now=now, stored=stored.get(name, StoredQueue())
            )

    async def retire(
        self, name: str, app: str, *, declared_at: Instant, by: str = "", now: Instant | None = None
    ) -> bool:
        check_pause(name, by)
        check_app(app)
        check_number(declared_at, "declared_at")
        return await self._change(name, retiring(app, declared_at), "retire declaration", by=by, now=now)

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
        at = await self._store.now() if now is None else now
        work = overriding(fields, by=by, why=why, at=at)
        await self._change(name, work, "set queue", by=by, version=version, now=now)

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
        await self._change(name, resetting(fields), "reset queue", by=by, version=version, now=now)

    async def _stored(self, *names: str) -> dict[str, StoredQueue]:
        rows = await self._store.read(SQL.layers, names)
        return {name: StoredQueue(*rest) for name, *rest in rows}

    async def _change(
        self,
        name: str,
        work: Work,
        action: str,
        *,
        by: str = "",
        version: int | None = None,
        now: Instant | None,
        stored: StoredQueue | None = None,
    ) -> bool:
        """Change the layers of a queue. `stored`: as they were read, of a queue that may be new."""
        creates, store = stored is not None, self._store

        async def read() -> StoredQueue:
            found = (await self._stored(name)).get(name)
            if found is None and not creates:
                await store.call(store.commands, "existing_queue_v1", name)  # says which there are
            return found or StoredQueue()

        async def write(seen: StoredQueue, change: LayerChange) -> bool:
            new = change.options
            (signals,) = await store.call(
                store.commands, "change_layers_v1", name, creates, seen.version, change.layers,
                None if new is None else encode_options(new),
                None if new is None else _encode(flat(new)).decode(), by, action, change.detail, now,
            )  # fmt: skip
            store.pubsub.send(signals or ())
            return signals is not None

        return await change_layers(name, work, read=read, write=write, version=version, stored=stored)

    async def pause(self, name: str, *, by: str = "", why: str = "", now: Instant | None = None) -> None:
        check_pause(name, by, why)
        await self._store.call(self._store.commands, "pause_v1", name, by, why, now)

    async def resume(self, name: str, *, by: str = "", now: Instant | None = None) -> None:
        check_pause(name, by)
        await self._store.change(self._store.commands, "resume_v1", name, by, now)

    async def sample(
        self, minute: Instant, samples: Sequence[QueueSample], *, now: Instant | None = None
    ) -> bool:
        check_samples(minute, samples)
        (written,) = await self._store.call(
            self._store.commands, "sample_v1", minute,
            [each.queue for each in samples], [each.stock for each in samples],
            [each.arrived for each in samples], [each.oldest_ready for each in samples],
        )  # fmt: skip
        return bool(written)

    async def list(self) -> "list[QueueInfo]":
        return [
            info_of(name, StoredQueue(options, layers, version), created_at, (paused_at, by, why))
            for name, options, layers, version, created_at, paused_at, by, why in await self._store.read(
                SQL.list
            )
        ]


class PostgresTasks:
    """See `tidemill.engine.protocol.TasksFacet`."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def publish(self, entries: Sequence[TaskEntry], *, now: Instant | None = None) -> None:
        check_entries(entries)
        last = {entry.name: _encode(without_pause(entry)) for entry in entries}
        names = sorted(last)
        await self._store.see_through(
            self._store.commands.fetch(self._store.sql(SQL.publish), names, [last[name] for name in names])
        )

    async def list(self) -> "list[TaskEntry]":
        return [with_pause(_entry(entry), *pause) for entry, *pause in await self._store.read(SQL.tasks)]

    async def pause(self, name: str, *, by: str = "", why: str = "", now: Instant | None = None) -> None:
        check_pause(name, by, why)
        await self._about(name, self._store.call(self._store.commands, "pause_task_v1", name, by, why, now))

    async def resume(self, name: str, *, by: str = "", now: Instant | None = None) -> None:
        check_pause(name, by)
        await self._about(name, self._store.change(self._store.commands, "resume_task_v1", name, by, now))

    async def _about(self, name: str, work: Awaitable[object]) -> None:
        try:
            await work
        except UnknownTask:
            raise unknown_task(name) from None


def flat(options: QueueOptions) -> dict[str, object]:
    """What the steps ask of a queue's options: columns of `queue`."""
    said = flat_options(options, KEEP_ENDED)
    own, per_key = said.own or FlatLimit(), said.per_key or FlatLimit()
    return {
        "keyed": options.keyed,
        "shaped": said.shaped,
        "limited": said.limited,
        "laned": said.shaped or said.limited,
        "key_limited": said.key_limited,
        "counts_runs": any(
            limit.concurrency is not None
            for limit in (own, per_key, *said.tasks.values(), *said.limits.values())
        ),
        "concurrency": own.concurrency,
        "rate_count": own.rate_count,
        "rate_window": own.rate_window,
        "key_concurrency": per_key.concurrency,
        "key_rate_count": per_key.rate_count,
        "key_rate_window": per_key.rate_window,
        "limits": said.limits,
        "tasks": said.tasks,
        "starts": said.starts,
        "weights": options.weights,
        "keep_body": options.keep_body,
        "keep_ages": said.keep_ages,
        "keep_counts": said.keep_counts,
        "keeps_all": said.keeps_all,
    }
