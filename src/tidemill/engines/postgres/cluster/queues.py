"""The `queues` and `tasks` facets."""

from collections.abc import Sequence

import msgspec

from tidemill.engine.shared.checks import check_entries, check_pause, check_text
from tidemill.engine.shared.flat_options import FlatLimit, flat_options
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.model.names import check_queue
from tidemill.model.queues.queue import KEEP_ENDED, QueueOptions
from tidemill.model.time import Instant
from tidemill.model.view import QueueInfo, TaskEntry

SQL = load_statements("tidemill.engines.postgres", "queues")

_options = msgspec.json.Decoder(QueueOptions).decode
_encode_options = msgspec.json.Encoder(order="sorted").encode
_entry = msgspec.json.Decoder(TaskEntry).decode
_encode = msgspec.json.Encoder().encode


class PostgresQueues:
    """See `tidemill.engine.protocol.QueuesFacet`."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def configure(
        self, name: str, options: QueueOptions, *, by: str = "", now: Instant | None = None
    ) -> None:
        check_queue(name)
        check_text(by, "by")
        await self._store.change(
            self._store.commands, "configure_v1",
            name, _encode_options(options), _encode(flat(options)).decode(), by, now,
        )  # fmt: skip

    async def pause(self, name: str, *, by: str = "", why: str = "", now: Instant | None = None) -> None:
        check_pause(name, by, why)
        await self._store.call(self._store.commands, "pause_v1", name, by, why, now)

    async def resume(self, name: str, *, by: str = "", now: Instant | None = None) -> None:
        check_pause(name, by)
        await self._store.change(self._store.commands, "resume_v1", name, by, now)

    async def list(self) -> "list[QueueInfo]":
        return [
            QueueInfo(
                name=name,
                options=_options(options),
                created_at=created_at,
                paused_at=paused_at,
                paused_by=paused_by,
                paused_why=paused_why,
            )
            for name, options, created_at, paused_at, paused_by, paused_why in await self._store.read(
                SQL.list
            )
        ]


class PostgresTasks:
    """See `tidemill.engine.protocol.TasksFacet`."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store

    async def publish(self, entries: Sequence[TaskEntry], *, now: Instant | None = None) -> None:
        check_entries(entries)
        last = {entry.name: _encode(entry) for entry in entries}
        names = sorted(last)
        await self._store.see_through(
            self._store.commands.fetch(self._store.sql(SQL.publish), names, [last[name] for name in names])
        )

    async def list(self) -> "list[TaskEntry]":
        return [_entry(entry) for (entry,) in await self._store.read(SQL.tasks)]


def flat(options: QueueOptions) -> dict[str, object]:
    """What the steps ask of a queue's options: columns of `queue`."""
    said = flat_options(options, KEEP_ENDED)
    own, per_key = said.own or FlatLimit(), said.per_key or FlatLimit()
    return {
        "keyed": options.keyed,
        "shaped": said.shaped,
        "limited": said.limited,
        "key_limited": said.per_key is not None,
        "concurrency": own.concurrency,
        "rate_count": own.rate_count,
        "rate_window": own.rate_window,
        "key_concurrency": per_key.concurrency,
        "key_rate_count": per_key.rate_count,
        "key_rate_window": per_key.rate_window,
        "tasks": said.tasks,
        "weights": options.weights,
        "keep_body": options.keep_body,
        "keep_ages": said.keep_ages,
        "keep_counts": said.keep_counts,
        "keeps_all": said.keeps_all,
    }
