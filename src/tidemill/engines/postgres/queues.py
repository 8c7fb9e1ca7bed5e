"""The `queues` and `tasks` facets."""

from collections.abc import Sequence

import msgspec

from tidemill.engine.shared.checks import check_entries
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.postgres.store import Store
from tidemill.model.names import check_queue
from tidemill.model.queue import KEEP_ENDED, Keep, Limit, QueueOptions
from tidemill.model.time import Instant, span_of
from tidemill.model.view import QueueInfo, TaskEntry

SQL = load_statements(__package__, "queues")

_options = msgspec.json.Decoder(QueueOptions).decode
_encode_options = msgspec.json.Encoder(order="sorted").encode
_entry = msgspec.json.Decoder(TaskEntry).decode
_encode = msgspec.json.Encoder().encode


class PostgresQueues:
    """See `tidemill.engine.protocol.Queues`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def configure(
        self, name: str, options: QueueOptions, *, by: str = "", now: Instant | None = None
    ) -> None:
        check_queue(name)
        await self._store.change(
            self._store.commands, "configure_v1",
            name, _encode_options(options), _encode(flat(options)).decode(), by, now,
        )  # fmt: skip

    async def pause(self, name: str, *, by: str = "", why: str = "", now: Instant | None = None) -> None:
        await self._store.call(self._store.commands, "pause_v1", name, by, why, now)

    async def resume(self, name: str, *, by: str = "", now: Instant | None = None) -> None:
        await self._store.change(self._store.commands, "resume_v1", name, by, now)

    async def list(self) -> list[QueueInfo]:
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
    """See `tidemill.engine.protocol.Tasks`."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def publish(self, entries: Sequence[TaskEntry], *, now: Instant | None = None) -> None:
        check_entries(entries)
        last = {entry.name: _encode(entry) for entry in entries}
        names = sorted(last)
        await self._store.see_through(
            self._store.commands.fetch(self._store.sql(SQL.publish), names, [last[name] for name in names])
        )

    async def list(self) -> list[TaskEntry]:
        return [_entry(entry) for (entry,) in await self._store.read(SQL.tasks)]


def flat(options: QueueOptions) -> dict[str, object]:
    """What the steps ask of a queue's options, worked out: columns of `queue`."""
    keeps = options.keeps(KEEP_ENDED)
    tasks = {task: _limit(limit) for task, limit in options.per_task.items() if limit}
    concurrency, rate_count, rate_window = _limit(options.own)
    key_concurrency, key_rate_count, key_rate_window = _limit(options.per_key)
    return {
        "keyed": options.keyed,
        "shaped": options.keyed or bool(tasks),
        "limited": bool(options.own) or bool(options.per_key) or bool(tasks),
        "key_limited": bool(options.per_key),
        "concurrency": concurrency,
        "rate_count": rate_count,
        "rate_window": rate_window,
        "key_concurrency": key_concurrency,
        "key_rate_count": key_rate_count,
        "key_rate_window": key_rate_window,
        "tasks": tasks,
        "weights": options.weights,
        "keep_body": options.keep_body,
        "keep_ages": [_age(keep) for keep in keeps],
        "keep_counts": [keep.count for keep in keeps],
        "keeps_all": options.keep_body and not any(keep.nothing for keep in keeps),
    }


def _limit(limit: Limit | None) -> tuple[int | None, int | None, int | None]:
    if limit is None:
        return None, None, None
    if limit.rate is None:
        return limit.concurrency, None, None
    return limit.concurrency, limit.rate.count, limit.rate.window


def _age(keep: Keep) -> int | None:
    return None if keep.age is None else span_of(keep.age)
