"""Dead-letter groups: each is found by one step through the index of dead letters by group."""

from collections.abc import Iterator
from sqlite3 import Connection

import msgspec

from tidemill.engine.shared.groups import GroupWalk
from tidemill.engine.shared.statements import load_statements
from tidemill.model.jobs.job import Failure
from tidemill.model.view import DeadGroup, GroupPage

SQL = load_statements("tidemill.engines.sqlite", "inspect")

_failure = msgspec.json.Decoder(Failure).decode


def page(db: Connection, walk: GroupWalk) -> GroupPage:
    """The next groups."""
    groups: list[DeadGroup] = []
    for queue, name, task, fingerprint in _walk(db, walk):
        if len(groups) == walk.limit:
            return walk.page(groups, more=True)
        count, first_at = db.execute(SQL.group_count, (queue, task, fingerprint)).fetchone()
        sample, last_at, record = db.execute(SQL.group_sample, (queue, task, fingerprint)).fetchone()
        failure = Failure() if record is None else _failure(record)
        groups.append(
            DeadGroup(
                queue=name, task=task, fingerprint=fingerprint, count=count, first_at=first_at,
                last_at=last_at, sample=sample, kind=failure.kind, error=failure.error,
                message=failure.message,
            )
        )  # fmt: skip
    return walk.page(groups, more=False)


def _walk(db: Connection, walk: GroupWalk) -> Iterator[tuple[int, str, str, str]]:
    for queue, name in db.execute(SQL.queues).fetchall():
        if not walk.wants_queue(name):
            continue
        found = walk.begin_in(name)
        while (found := db.execute(SQL.next_group, (queue, *found)).fetchone()) is not None:
            if walk.task not in (None, found[0]):
                break
            yield queue, name, *found
