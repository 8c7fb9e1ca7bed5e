"""The `queues` and `tasks` facets."""

from collections.abc import Mapping, Sequence

import msgspec

from tidemill.engine.shared.checks import check_entries, check_number, check_pause, check_samples
from tidemill.engine.shared.codes import unknown_task
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
    info_of,
    overriding,
    resetting,
    retiring,
)
from tidemill.engine.shared.records import with_pause, without_pause
from tidemill.engines.redis.cluster.flat import flat
from tidemill.engines.redis.db.call import DEFAULTS, ScriptCall
from tidemill.engines.redis.db.store import RedisStore
from tidemill.model.errors import UnknownQueue, UnknownTask
from tidemill.model.queues.layers import Declaration, Fields
from tidemill.model.stats.sample import QueueSample
from tidemill.model.time import Instant
from tidemill.model.view import QueueInfo, TaskEntry

_entry = msgspec.json.Decoder(TaskEntry).decode
_encode = msgspec.json.Encoder().encode


class RedisQueues:
    """See `tidemill.engine.protocol.QueuesFacet`."""

    def __init__(self, store: RedisStore) -> None:
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
        rows = await self._store.run(self._store.reads, "queues", ScriptCall(names=names))
        return {name.decode(): StoredQueue(*rest[:3]) for name, *rest in rows}

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
                raise UnknownQueue(f"there is no queue {name!r}")
            return found or StoredQueue()

        async def write(seen: StoredQueue, change: LayerChange) -> bool:
            call = ScriptCall(
                name=name, creates=creates, version=seen.version, defaults=DEFAULTS, by=by, action=action,
                detail=change.detail, queue=None if change.options is None else flat(change.options),
            )  # fmt: skip
            call.add(change.layers)
            return bool(await store.run(store.commands, "change_layers", call, now))

        return await change_layers(name, work, read=read, write=write, version=version, stored=stored)

    async def pause(self, name: str, *, by: str = "", why: str = "", now: Instant | None = None) -> None:
        check_pause(name, by, why)
        await self._about(name, "pause", ScriptCall(name=name, by=by, why=why), now)

    async def resume(self, name: str, *, by: str = "", now: Instant | None = None) -> None:
        check_pause(name, by)
        await self._about(name, "resume", ScriptCall(name=name, by=by), now)

    async def _about(self, name: str, script: str, call: ScriptCall, now: Instant | None) -> None:
        try:
            await self._store.run(self._store.commands, script, call, now)
        except UnknownQueue:
            raise UnknownQueue(f"there is no queue {name!r}") from None

    async def sample(
        self, minute: Instant, samples: Sequence[QueueSample], *, now: Instant | None = None
    ) -> bool:
        check_samples(minute, samples)
        rows = [
            (each.queue, each.stock, *(False if n is None else n for n in (each.arrived, each.oldest_ready)))
            for each in samples
        ]
        call = ScriptCall(minute=minute, samples=rows)
        return bool(await self._store.run(self._store.commands, "sample", call, now))

    async def list(self) -> "list[QueueInfo]":
        rows = await self._store.run(self._store.reads, "queues", ScriptCall())
        return [
            info_of(
                name.decode(),
                StoredQueue(options, layers, version),
                created_at,
                (paused_at, by.decode(), why.decode()),
            )
            for name, options, layers, version, created_at, paused_at, by, why in rows
        ]


class RedisTasks:
    """See `tidemill.engine.protocol.TasksFacet`."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def publish(self, entries: Sequence[TaskEntry], *, now: Instant | None = None) -> None:
        check_entries(entries)
        call = ScriptCall(names=[entry.name for entry in entries], defaults=DEFAULTS)
        call.add(*(_encode(without_pause(entry)) for entry in entries))
        await self._store.run(self._store.commands, "publish", call, now)

    async def list(self) -> "list[TaskEntry]":
        rows = await self._store.run(self._store.reads, "tasks", ScriptCall())
        entries = [
            with_pause(_entry(entry), at, (by or b"").decode(), (why or b"").decode())
            for _, entry, at, by, why in rows
        ]
        return sorted(entries, key=lambda entry: entry.name)

    async def pause(self, name: str, *, by: str = "", why: str = "", now: Instant | None = None) -> None:
        check_pause(name, by, why)
        await self._about(name, "pause_task", ScriptCall(name=name, by=by, why=why), now)

    async def resume(self, name: str, *, by: str = "", now: Instant | None = None) -> None:
        check_pause(name, by)
        await self._about(name, "resume_task", ScriptCall(name=name, by=by), now)

    async def _about(self, name: str, script: str, call: ScriptCall, now: Instant | None) -> None:
        try:
            await self._store.run(self._store.commands, script, call, now)
        except UnknownTask:
            raise unknown_task(name) from None
