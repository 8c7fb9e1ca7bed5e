"""Storing new jobs."""

from collections.abc import Sequence
from itertools import islice

from tidemill.engine.merging import bytes_of, has_unique, steps
from tidemill.engine.protocol import PROMOTE_LIMIT
from tidemill.engines.sqlite.jobs import dependents, facts, storing
from tidemill.engines.sqlite.jobs.step import BLOCKED, READY, SCHEDULED, Step
from tidemill.engines.sqlite.order import positions
from tidemill.engines.sqlite.unique import keys, meeting
from tidemill.model.errors import UnknownParent
from tidemill.model.ids import JobId, show_id
from tidemill.model.jobs.job import NewJob, Stored

ITEM_BYTES = 8 << 10
"""So much payload counts as one more item: 16 MiB fill a transaction."""


def enqueue_calls(step: Step, calls: list[Sequence[NewJob]]) -> list[list[Stored]]:
    """Store the jobs of several calls, in their order, with as few statements as those of one."""
    answers: list[list[Stored]] = []
    for together in steps(calls):
        stored = iter(enqueue(step, [job for jobs in together for job in jobs]))
        answers += [list(islice(stored, len(jobs))) for jobs in together]
    dependents.update_if_needed(step, PROMOTE_LIMIT)
    return answers


def size_of(jobs: Sequence[NewJob]) -> int:
    """How many items of a transaction these jobs are: as many as they are, and more if they are large. A
    transaction bounds its items, because other processes wait for it (`writer`)."""
    return len(jobs) + bytes_of(jobs) // ITEM_BYTES


def enqueue(step: Step, jobs: Sequence[NewJob]) -> list[Stored]:
    """Store jobs that have been checked."""
    if not jobs:
        return []
    if any(job.after for job in jobs):
        return _store_each(step, jobs)
    if has_unique(jobs):
        return _store_unique(step, jobs)
    if not storing.store_all(step, jobs):
        return _store_each(step, jobs)
    return [Stored(job.id, True) for job in jobs]


def name_new(step: Step, jobs: Sequence[NewJob], stored: Sequence[Stored]) -> None:
    """Name those that were stored, none of which waits for others: the caller cannot know which."""
    for job, answer in zip(jobs, stored, strict=True):
        if answer.created:
            due_at = step.now + job.delay if job.at is None else job.at
            queue = step.catalogue.named(job.queue, step.now)
            step.moved(job.id, READY if due_at <= step.now else SCHEDULED, queue.pk, job.task)


def _store_unique(step: Step, jobs: Sequence[NewJob]) -> list[Stored]:
    """Jobs without parents, of which some have keys: what is new goes together."""
    answers: list[Stored] = []
    new: dict[JobId, NewJob] = {}
    held: set[tuple[str, str]] = set()
    for job in jobs:
        unique = job.unique
        if unique is not None and (job.task, unique.key) in held:  # by one of this very call, perhaps
            _store_new(step, new)
            held.clear()
        known = job.id in new or step.db.execute(keys.SQL.find_job, (job.id,)).fetchone() is not None
        met = None if known or unique is None else meeting.meet(step, job, unique)
        if not known and met is None:
            new[job.id] = job
            if unique is not None:
                held.add((job.task, unique.key))
        answers.append(Stored(met or job.id, not known and met is None))
    _store_new(step, new)
    return answers


def _store_new(step: Step, new: dict[JobId, NewJob]) -> None:
    """Jobs of which no id is known, and whose keys are free."""
    if not new:
        return
    jobs = list(new.values())
    first = step.next_seq()
    storing.store_all(step, jobs)
    keys.hold_all(
        step, [(job, job.unique, pk) for pk, job in enumerate(jobs, first) if job.unique is not None]
    )
    new.clear()


def _store_each(step: Step, jobs: Sequence[NewJob]) -> list[Stored]:
    """Store one by one: some ids may be known, some jobs may wait for others or have keys."""
    answers = []
    for job in jobs:
        known = step.db.execute(keys.SQL.find_job, (job.id,)).fetchone() is not None
        met = None if known or job.unique is None else meeting.meet(step, job, job.unique)
        if not known and met is None:
            _store_one(step, job)
        answers.append(Stored(met or job.id, not known and met is None))
    return answers


def _store_one(step: Step, job: NewJob) -> None:
    if not job.after:
        _store_new(step, {job.id: job})
        return
    now = step.now
    parents = facts.by_ids(step, dict.fromkeys(job.after))
    for parent in job.after:
        if parent not in parents:
            raise UnknownParent(_no_parent(job, parent))
    queue = step.catalogue.named(job.queue, now)
    due_at = job.at if job.at is not None else now + job.delay
    seq = step.next_seq()
    step.db.execute(storing.SQL.insert_job, storing.row_of(job, queue, "", seq, BLOCKED, due_at, now))
    step.db.execute(storing.SQL.insert_waiting, (seq, job.parent_died))
    if job.unique is not None:
        keys.hold_all(step, [(job, job.unique, seq)])
    step.db.execute(positions.SQL.add_blocked, (queue.pk, seq))
    if job.expires is not None:
        step.db.execute(positions.SQL.add_expiring, (now + job.expires, seq))
    step.move(queue.pk, None, BLOCKED)
    if dependents.wait_for(step, seq, parents.values()):
        step.moved(job.id, BLOCKED, queue.pk, job.task)


def _no_parent(job: NewJob, parent: JobId) -> str:
    return (
        f"{job.task} waits for {show_id(parent)}, which the engine does not have: enqueue it first, "
        "or earlier in the same call"
    )
