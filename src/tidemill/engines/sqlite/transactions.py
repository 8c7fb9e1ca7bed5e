"""The `transactions` facet: enqueue and complete on a connection of the caller's own.

Enqueue reads nothing here, except for a `check`: its statements look everything up themselves (queue, order,
lane). A keyed queue's lane is not worked out in SQL: such jobs are stored in the plain lane, which is marked,
so that the next claim of that queue puts them where they belong before it takes any. Completing reads the run
first, under the file's lock, and then writes what `moves.to_final` would."""

import os
import sqlite3
import time
from collections.abc import Sequence
from typing import TypeVar

from tidemill.engine.protocol import CheckKnown, Script
from tidemill.engine.shared.checks import check_ids, check_notes, check_settlements, check_transaction
from tidemill.engine.shared.codes import line_bytes
from tidemill.engine.shared.savepoint import whole
from tidemill.engine.shared.statements import load_statements
from tidemill.engine.shared.uniques import not_unique, until_code
from tidemill.engines.sqlite.cluster.catalogue import DEFAULT_OPTIONS
from tidemill.engines.sqlite.db.store import StoreSession
from tidemill.engines.sqlite.jobs import storing
from tidemill.engines.sqlite.jobs.step import COMPLETED, RUNNING
from tidemill.engines.sqlite.jobs.transitions import keep_of
from tidemill.model.errors import BadInput, WrongPlace
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Fence, KnownCall, NewJob, Stored
from tidemill.model.jobs.run import (
    LOG_LINES_KEPT,
    Answer,
    Checkpoint,
    Completed,
    Fate,
    LogLine,
    Note,
    Progress,
    Settlement,
    Started,
    check_own,
)
from tidemill.model.jobs.unique import UniqueKey
from tidemill.model.queues.layers import read_stored
from tidemill.model.time import MINUTE, Instant
from tidemill.model.view import Statement

T = TypeVar("T")

SQL = load_statements("tidemill.engines.sqlite", "transactions")

WHOLE, SMALL, TOMBSTONE = range(3)
"""Forms of an ended job, as stored."""

_STEPS = (
    SQL.draw_seq, SQL.insert_job, SQL.put_ready, SQL.put_due, SQL.put_expiring, SQL.announce_lane,
    SQL.mark_lane, SQL.count_job,
)  # fmt: skip
_ENDING = (
    SQL.split_run, SQL.shorten_run, SQL.remove_run, SQL.add_outcome, SQL.let_go, SQL.unpark, SQL.open_lanes,
    SQL.one_less_runs, SQL.count_finished, SQL.free_key,
)  # fmt: skip
_KEPT = SQL.add_ended, SQL.one_more_completed
_BURIED = SQL.add_grave, SQL.forget_history, SQL.forget_failures, SQL.forget_log, SQL.forget_checkpoints


class SqliteTransactions:
    """See `tidemill.engine.protocol.TransactionsFacet`."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session

    def enqueue(self, jobs: Sequence[NewJob], *, check: CheckKnown | None = None) -> Script[list[Stored]]:
        check_transaction(jobs)
        return self._whole(self._enqueue(jobs, check))

    def complete(self, settlement: Settlement, notes: Sequence[Note] = ()) -> Script[Answer]:
        if not isinstance(settlement.outcome, Completed):
            raise BadInput("only a completion can be recorded in a transaction of the caller's")
        check_settlements([settlement])
        check_own(settlement, notes)
        check_notes(notes, most=None)
        return self._whole(self._complete(settlement, settlement.outcome, notes))

    async def fates(self, runs: Sequence[tuple[JobId, Fence]]) -> list[Fate]:
        check_ids([run[0] for run in runs])
        return await self._session.read(lambda db: [_fate(db, *run) for run in runs])

    def _here(self) -> Script[None]:
        """The statements that follow name no file: the connection's main one has to be ours."""
        rows = yield Statement(SQL.where_am_i, {})
        url, file = self._session.url, os.fsdecode(rows[0][0] or "") if rows else ""
        if not file or not os.path.exists(file) or not os.path.samefile(file, url.path or os.devnull):
            raise WrongPlace(
                f"this connection is to {file or 'a database in memory'}, and the app's jobs are in {url}: "
                "pass a connection to that file"
            )

    def _whole(self, script: Script[T]) -> Script[T]:
        """All of a script or nothing, whatever the caller's transaction comes to: an error in SQLite undoes
        one statement only. The lock comes first: it begins a transaction where the driver does that by
        itself, and releasing a savepoint that stands in none would commit."""
        yield from self._here()
        yield Statement(SQL.lock_file, {})
        return (yield from whole(script, {}))

    def _enqueue(self, jobs: Sequence[NewJob], check: CheckKnown | None = None) -> Script[list[Stored]]:
        stored: list[Stored] = []
        for queue in dict.fromkeys(job.queue for job in jobs):
            yield Statement(SQL.add_queue, {"name": queue, "options": DEFAULT_OPTIONS})
            yield Statement(SQL.note_queue, {"name": queue})
        for job in jobs:
            values = _values(job)
            met = None if job.unique is None else (yield from _meet(job, job.unique, values))
            if met is not None:
                stored.append(Stored(met, False))
                continue
            for text in _STEPS:
                yield Statement(text, values)
            created = bool((yield Statement(SQL.was_created, values))[0][0])
            if created and job.unique is not None:
                for text in (SQL.note_key, SQL.hold_key, SQL.hold_period):
                    yield Statement(text, values)
            stored.append(Stored(job.id, created))
        if check is not None:
            check((yield from _known(jobs)))
        return stored

    def _complete(self, settlement: Settlement, outcome: Completed, notes: Sequence[Note]) -> Script[Answer]:
        rows = yield Statement(SQL.find_run, {"id": settlement.id})
        if not rows:
            return Answer.STALE
        (pk, queue, task, key, state, fence, settled_fence, claimed_at, started_at, member, has_children,
         options) = rows[0]  # fmt: skip
        answer = judge(state, fence, settled_fence, settlement.fence)
        if answer is not Answer.APPLIED:
            return answer
        kept = read_stored(options).options
        form = TOMBSTONE if keep_of(kept, COMPLETED).nothing else WHOLE if kept.keep_body else SMALL
        now = time.time_ns() // 1_000
        if started_at is None:
            noted = any(isinstance(note.entry, Started) for note in notes)
            started_at = now if noted else now - settlement.ran
        values: dict[str, object] = {
            "pk": pk, "queue": queue, "task": task, "key": key, "fence": fence, "form": form, "now": now,
            "minute": now - now % MINUTE, "claimed_at": claimed_at, "member": member,
            "started_at": started_at, "result": outcome.result if form == WHOLE else None,
        }  # fmt: skip
        for note in notes:
            yield _noted(pk, note, now)
        if notes:
            yield Statement(SQL.cut_log, {"pk": pk, "kept": LOG_LINES_KEPT})
        for text in (*_ENDING, *(_BURIED if form == TOMBSTONE else _KEPT)):
            yield Statement(text, values)
        if form != WHOLE:
            yield Statement(SQL.drop_payload, values)
        if has_children:
            yield Statement(SQL.add_ended_parent, values)
        if settlement.then is not None:
            yield from self._enqueue(settlement.then.jobs)
            if settlement.then.schedule is not None:
                then = settlement.then
                sets = {"next_at": now + then.schedule_in, "name": then.schedule}
                yield Statement(SQL.set_schedule, {**sets, "version": then.schedule_version})
        return Answer.APPLIED


def judge(state: int, fence: Fence, settled_fence: Fence | None, wanted: Fence) -> Answer:
    """Whether a run may still speak for its job."""
    if state == RUNNING and fence == wanted:
        return Answer.APPLIED
    return Answer.ALREADY if settled_fence == wanted else Answer.STALE


def _noted(pk: int, note: Note, now: Instant) -> Statement:
    match note.entry:
        case Started():
            return Statement(SQL.set_started, {"pk": pk, "fence": note.fence, "now": now})
        case Progress(value=value):
            return Statement(SQL.set_progress, {"pk": pk, "value": value})
        case LogLine(number=number, level=level, message=message):
            line = {"number": number, "level": level, "message": line_bytes(message).decode()}
            return Statement(SQL.add_line, {"pk": pk, "fence": note.fence, "now": now, **line})
        case Checkpoint(name=name, value=value):
            return Statement(SQL.add_checkpoint, {"pk": pk, "name": name, "value": value})


def _fate(db: sqlite3.Connection, job_id: JobId, fence: Fence) -> Fate:
    """A transaction that is still open looks like none; the settle waits for it."""
    row = db.execute("SELECT state, fence, settled_fence FROM job_now WHERE id = ?", (job_id,)).fetchone()
    if row is None:
        return Fate.GONE
    if row[2] == fence:
        return Fate.SETTLED
    return Fate.FREE if row[0] == RUNNING and row[1] == fence else Fate.GONE


def _known(jobs: Sequence[NewJob]) -> Script[list[KnownCall]]:
    found: list[KnownCall] = []
    for job_id in dict.fromkeys(job.id for job in jobs):
        for task, number, body in (yield Statement(SQL.find_call, {"id": job_id})):
            found.append(KnownCall(job_id, task.decode(), number, body))
    return found


def _meet(job: NewJob, unique: UniqueKey, values: dict[str, object]) -> Script[JobId | None]:
    """The job that this call meets; None: its key is free, or its id is known."""
    if (yield Statement(SQL.find_call, {"id": job.id})):
        return None
    for text in (SQL.find_replaced, SQL.find_holder):
        for (holder,) in (yield Statement(text, values)):
            if bytes(holder) == job.id:
                return None
            if unique.on_conflict == "refuse" and text is SQL.find_holder:
                raise not_unique(job.task, unique.key, bytes(holder))
            return bytes(holder)
    return None


def _values(job: NewJob) -> dict[str, object]:
    return {
        "id": job.id,
        "queue": job.queue,
        "priority": job.priority,
        "task": job.task,
        "key": job.key or "",
        "max_attempts": job.attempts,
        "at": job.at,
        "delay": job.delay,
        "expires": job.expires,
        "timeout": job.timeout,
        "retry": storing.encode_retry(job.retry),
        "on_dead": job.on_dead,
        "schedule": job.schedule,
        "codec": job.codec,
        "headers": job.headers,
        "body": job.body,
        "unique": None if job.unique is None else job.unique.key,
        "until": None if job.unique is None else until_code(job.unique),
        "period": None if job.unique is None else job.unique.period,
    }
