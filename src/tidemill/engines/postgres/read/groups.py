"""Dead-letter groups, found by steps through their index. Large ones are counted in the background."""

from typing import Any

import msgspec

from tidemill.engine.shared.groups import GroupWalk
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.postgres.db.connect import Connection
from tidemill.engines.postgres.db.connection import Row
from tidemill.engines.postgres.db.store import PostgresStore
from tidemill.engines.postgres.read.tallies import Recount
from tidemill.model.jobs.job import Failure
from tidemill.model.time import Span
from tidemill.model.view import DeadGroup, GroupPage

SQL = load_statements("tidemill.engines.postgres", "inspect")

MANY = 10_000
"""A group of more is counted in the background."""

_failure = msgspec.json.Decoder(Failure).decode

Counting = tuple[str, tuple[object, ...]]
"""A statement with its parameters."""
Known = dict[tuple[str, str], tuple[int, Span]]


class Groups:
    """The dead-letter groups of one engine object."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._recount = Recount(store)

    async def page(self, walk: GroupWalk) -> GroupPage:
        """The next groups."""
        groups, large, more = await self._store.snapshot(lambda connection: self._read(connection, walk))
        if large:
            self._recount.begin([*large, (SQL.forget_group_tallies, (MANY,))])
        return walk.page(groups[: walk.limit], more=more)

    async def _read(
        self, connection: "Connection[Any]", walk: GroupWalk
    ) -> tuple[list[DeadGroup], list[Counting], bool]:
        """Groups, what is to be counted again, and whether there are more."""
        sql = self._store.sql
        groups: list[DeadGroup] = []
        large: list[Counting] = []
        for (queue,) in await connection.fetch(sql(SQL.queues)):
            if not walk.wants_queue(queue):
                continue
            begin, left = walk.begin_in(queue), walk.limit + 1 - len(groups)
            found = await connection.fetch(sql(SQL.groups), queue, *begin, walk.task, MANY + 1, left)
            many = [row for row in found if row[2] > MANY]
            large += [(SQL.recount_group, (queue, row[0], row[1])) for row in many]
            tallies = await connection.fetch(sql(SQL.group_tallies), queue, None) if many else []
            known = {(task, fingerprint): (count, age) for task, fingerprint, count, age in tallies}
            groups += [_group(queue, row, known) for row in found]
            if len(groups) > walk.limit:
                return groups, large, True
        return groups, large, False


def _group(queue: str, row: Row, known: Known) -> DeadGroup:
    task, fingerprint, count, first_at, last_at, sample, said = row
    age = 0
    if count > MANY:
        count, age = known.get((task, fingerprint), (count, 0))
    failure = Failure() if said is None else _failure(said)
    return DeadGroup(
        queue=queue, task=task, fingerprint=fingerprint, count=count, first_at=first_at, last_at=last_at,
        sample=sample, kind=failure.kind, error=failure.error, message=failure.message, age=max(0, age),
    )  # fmt: skip
