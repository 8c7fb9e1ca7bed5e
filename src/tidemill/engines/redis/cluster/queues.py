"""The `queues` and `tasks` facets."""

from collections.abc import Sequence

import msgspec

from tidemill.engine.shared.checks import check_entries, check_pause, check_text
from tidemill.engines.redis.cluster.flat import flat
from tidemill.engines.redis.db.call import DEFAULTS, ScriptCall
from tidemill.engines.redis.db.store import RedisStore
from tidemill.model.errors import UnknownQueue
from tidemill.model.names import check_queue
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import Instant
from tidemill.model.view import QueueInfo, TaskEntry

_options = msgspec.json.Decoder(QueueOptions).decode
_entry = msgspec.json.Decoder(TaskEntry).decode
_encode = msgspec.json.Encoder().encode


class RedisQueues:
    """See `tidemill.engine.protocol.QueuesFacet`."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def configure(
        self, name: str, options: QueueOptions, *, by: str = "", now: Instant | None = None
    ) -> None:
        check_queue(name)
        check_text(by, "by")
        call = ScriptCall(name=name, queue=flat(options), defaults=DEFAULTS, by=by)
        await self._store.run(self._store.commands, "configure", call, now)

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

    async def list(self) -> "list[QueueInfo]":
        return [
            QueueInfo(
                name=name.decode(),
                options=_options(options),
                created_at=created_at,
                paused_at=paused_at,
                paused_by=paused_by.decode(),
                paused_why=paused_why.decode(),
            )
            for name, options, created_at, paused_at, paused_by, paused_why in await self._store.run(
                self._store.reads, "queues", ScriptCall()
            )
        ]


class RedisTasks:
    """See `tidemill.engine.protocol.TasksFacet`."""

    def __init__(self, store: RedisStore) -> None:
        self._store = store

    async def publish(self, entries: Sequence[TaskEntry], *, now: Instant | None = None) -> None:
        check_entries(entries)
        call = ScriptCall(names=[entry.name for entry in entries], defaults=DEFAULTS)
        call.add(*(_encode(entry) for entry in entries))
        await self._store.run(self._store.commands, "publish", call, now)

    async def list(self) -> "list[TaskEntry]":
        entries = await self._store.run(self._store.reads, "tasks", ScriptCall())
        return sorted(map(_entry, entries), key=lambda entry: entry.name)
