"""What people do to jobs: cancel, replay, drop; and what runs write about themselves."""

from collections.abc import Sequence

from tidemill.engine.shared.codes import line_bytes
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.jobs import facts, transitions
from tidemill.engines.sqlite.jobs.facts import Facts
from tidemill.engines.sqlite.jobs.step import BLOCKED, CANCELLED, COMPLETED, RUNNING, SCHEDULED, Step
from tidemill.engines.sqlite.jobs.waiting import GONE, parent_ended
from tidemill.engines.sqlite.order import positions
from tidemill.engines.sqlite.order.positions import TOMBSTONE
from tidemill.engines.sqlite.unique import keys
from tidemill.model.event import member_topic
from tidemill.model.ids import JobId, show_id
from tidemill.model.jobs.job import CancelAnswer, DropAnswer, Edit, ReplayAnswer, RunNowAnswer
from tidemill.model.jobs.run import LOG_LINES_KEPT, Answer, Checkpoint, LogLine, Note, Progress, Started

SQL = load_statements("tidemill.engines.sqlite", "commands")


def cancel(step: Step, ids: Sequence[JobId], by: str) -> list[CancelAnswer]:
    """Stop jobs: those not started never start, running ones get a stop request."""
    answers, changed = [], []
    for job_id in ids:
        job = facts.by_ids(step, (job_id,)).get(job_id)
        answers.append(_cancel(step, job))
        if job is not None and job.state <= RUNNING and not job.cancel_requested:
            changed.append(job_id)
    _audit(step, by, "cancel", changed)
    return answers


def _cancel(step: Step, job: Facts | None) -> CancelAnswer:
    if job is None:
        return CancelAnswer.UNKNOWN
    if job.state == RUNNING:
        if not job.cancel_requested:
            step.db.execute(SQL.ask_to_stop, (job.pk,))
            (member,) = step.db.execute(SQL.member_of, (job.claimant,)).fetchone()
            step.signal(member_topic(member))
        return CancelAnswer.ASKED
    if job.state < RUNNING:
        transitions.cancel(step, job)
        return CancelAnswer.CANCELLED
    return CancelAnswer.CANCELLED if job.state == CANCELLED else CancelAnswer.FINISHED


def run_now(step: Step, ids: Sequence[JobId], by: str) -> list[RunNowAnswer]:
    """What is scheduled is due now."""
    answers, changed = [], []
    for job_id in ids:
        job = facts.by_ids(step, (job_id,)).get(job_id)
        if job is not None and job.state == SCHEDULED:
            transitions.to_ready(step, job, keep_seq=False)
            step.db.execute(SQL.forget_due_time, (job.pk,))
            changed.append(job_id)
        answers.append(_run_now_answer(job))
    _audit(step, by, "run now", changed)
    return answers


def _run_now_answer(job: Facts | None) -> RunNowAnswer:
    if job is None or job.form == TOMBSTONE:
        return RunNowAnswer.UNKNOWN
    if job.state > RUNNING:
        return RunNowAnswer.FINISHED
    if job.state == RUNNING:
        return RunNowAnswer.RUNNING
    return RunNowAnswer.BLOCKED if job.state == BLOCKED else RunNowAnswer.READY


def replay(step: Step, ids: Sequence[JobId], token: bytes, edit: Edit | None, by: str) -> list[ReplayAnswer]:
    """Run finished jobs again, once per token."""
    answers, changed = [], []
    for job_id in ids:
        job = facts.by_ids(step, (job_id,)).get(job_id)
        answer = _may_replay(job, token)
        if answer is None and job is not None and not keys.take_again(step, job):
            answer = ReplayAnswer.NOT_UNIQUE
        if answer is None and job is not None:
            _replay(step, job if edit is None else _edit(step, job, edit), token)
            changed.append(job_id)
        answers.append(answer or ReplayAnswer.REPLAYED)
    _audit(step, by, "replay" if edit is None else "edit", changed)
    return answers


def _may_replay(job: Facts | None, token: bytes) -> ReplayAnswer | None:
    """None: yes."""
    if job is None or job.form == TOMBSTONE:
        return ReplayAnswer.UNKNOWN
    if job.replay_token == token:
        return ReplayAnswer.REPLAYED
    if job.state < COMPLETED:
        return ReplayAnswer.LIVE
    return ReplayAnswer.NO_BODY if job.form else None


def _replay(step: Step, job: Facts, token: bytes) -> None:
    step.db.execute(SQL.start_again, (job.pk,))
    step.db.execute(SQL.count_replay, (job.pk, token))
    if job.state == COMPLETED:
        step.db.execute(transitions.SQL.forget_checkpoints, (job.pk,))
    transitions.to_ready(step, job, keep_seq=False)


def _edit(step: Step, job: Facts, edit: Edit) -> Facts:
    """It has other arguments from now on, and with them maybe another key."""
    step.db.execute(SQL.edit, (edit.body, edit.codec, edit.key, job.pk))
    return job._replace(key=edit.key)


def drop(step: Step, ids: Sequence[JobId], by: str) -> list[DropAnswer]:
    """Delete finished jobs."""
    answers, changed = [], []
    for job_id in ids:
        job = facts.by_ids(step, (job_id,)).get(job_id)
        if job is None or job.form == TOMBSTONE:
            answers.append(DropAnswer.UNKNOWN)
        elif job.state < COMPLETED:
            answers.append(DropAnswer.LIVE)
        else:
            delete(step, job)
            changed.append(job_id)
            answers.append(DropAnswer.DROPPED)
    _audit(step, by, "drop", changed)
    return answers


def delete(step: Step, job: Facts) -> None:
    """A finished job goes, with everything kept about it."""
    positions.leave(step, job)
    transitions.forget_parts(step, job.pk)
    keys.forget(step, job)
    step.keep_seq(job.pk)
    for statement in (
        transitions.SQL.forget_watches,
        transitions.SQL.delete_more,
        transitions.SQL.delete_job,
    ):
        step.db.execute(statement, (job.pk,))
    if job.form != TOMBSTONE:
        step.move(job.queue, job.state, None)
    if job.has_children:
        parent_ended(step, job.pk, GONE)


def write(step: Step, notes: Sequence[Note]) -> list[Answer]:
    """Record what runs say about themselves, fenced."""
    jobs = facts.by_ids(step, {note.id: None for note in notes})
    answers: list[Answer] = []
    logged: set[int] = set()
    for note in notes:
        job = jobs.get(note.id)
        if job is None or job.state != RUNNING or job.fence != note.fence:
            answers.append(Answer.STALE)
            continue
        _write(step, job.pk, note)
        answers.append(Answer.APPLIED)
        if isinstance(note.entry, LogLine):
            logged.add(job.pk)
    for pk in logged:
        step.db.execute(SQL.cut_log, (pk, LOG_LINES_KEPT))
    return answers


def _write(step: Step, pk: int, note: Note) -> None:
    match note.entry:
        case Started():
            step.db.execute(SQL.set_started, (pk, note.fence, step.now))
        case Progress(value=value):
            step.db.execute(SQL.set_progress, (pk, value))
        case LogLine(number=number, level=level, message=message):
            step.db.execute(
                SQL.add_line, (pk, note.fence, number, step.now, level, line_bytes(message).decode())
            )
        case Checkpoint(name=name, value=value):
            step.db.execute(SQL.add_checkpoint, (pk, name, value))


def _audit(step: Step, by: str, action: str, ids: Sequence[JobId]) -> None:
    if ids:
        more = f" and {len(ids) - 1:,} more" if len(ids) > 1 else ""
        step.audit(by, action, show_id(ids[0]) + more)
