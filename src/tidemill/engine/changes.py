"""What a call has changed, read from its arguments, its answer and what the engine has named.

Mostly these say it all: what was claimed runs, what completed has completed. Where they do not (a new child
of parents that may have ended, a run that was claimed before anybody listened) the record is looked at before
it is told, which the teller does, later and only while somebody listens.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from tidemill.model.ids import JobId
from tidemill.model.job import Job, JobState, NewJob
from tidemill.model.move import Moves, reason_of
from tidemill.model.run import (
    Answer,
    ClaimedJob,
    Completed,
    Crashed,
    Failed,
    Settlement,
)
from tidemill.model.time import Instant

What: TypeAlias = tuple[str, str]
"""The queue and the task of a job."""

RUNS_KEPT = 100_000
"""The most runs of this process whose queue and task are remembered: many times what a worker holds."""


class Change(NamedTuple):
    """These jobs came into this state."""

    state: JobState
    what: What
    ids: list[JobId]
    member: bytes = b""
    error: str = ""


class Unsure(NamedTuple):
    """This job came into a state that its record must be asked for."""

    id: JobId
    otherwise: JobState
    """This one, unless the record says one of these:"""
    unless: tuple[JobState, ...] = ()
    what: What | None = None
    error: str = ""


class NewChild(NamedTuple):
    """This job is new and names parents: its record must be asked whether it waits for them."""

    id: JobId
    what: What


class Missed(NamedTuple):
    """Here changes are missing."""

    number: int | None
    """How many; None: not known."""


Changes: TypeAlias = list[Change | Unsure | NewChild | Missed]

_CANCELLED = (JobState.CANCELLED,)
_ENDED_BADLY = (JobState.CANCELLED, JobState.DEAD)


def enqueued(jobs: Sequence[NewJob], created: Iterable[bool], now: Instant) -> Changes:
    """New jobs. `now` is an estimate of the engine's clock: a job for just that moment may be told as one
    that waits for it, or the other way round."""
    groups: dict[tuple[JobState, str, str], list[JobId]] = {}
    children: list[NewChild] = []
    for job, new in zip(jobs, created, strict=True):
        if not new:
            continue
        if job.after:
            children.append(NewChild(job.id, (job.queue, job.task)))
            continue
        later = job.delay > 0 or (job.at is not None and job.at > now)
        state = JobState.SCHEDULED if later else JobState.READY
        groups.setdefault((state, job.queue, job.task), []).append(job.id)
    told: Changes = [Change(state, (queue, task), ids) for (state, queue, task), ids in groups.items()]
    return told + children


def first_state_of(child: Job) -> JobState:
    """What a new child with parents came into, by its record as it is later: what it moved to since then is
    told by whoever moved it. What its own enqueue did carries the time at which it was made. Of one that
    waits for a time the record does not show whether it waited for its parents before."""
    if child.ready_at == child.created_at:
        return JobState.READY
    if child.state is JobState.CANCELLED and child.ended_at == child.created_at:
        return JobState.CANCELLED
    if child.state is JobState.SCHEDULED and child.ready_at is None:
        return JobState.SCHEDULED
    return JobState.BLOCKED


class Runs:
    """The queues and tasks of what this process runs: a settlement does not name them."""

    def __init__(self) -> None:
        self._known: dict[JobId, What] = {}

    def forget(self) -> None:
        """Nobody listens."""
        self._known.clear()

    def claimed(self, jobs: Iterable[ClaimedJob], member: bytes) -> Changes:
        """They run."""
        known, groups = self._known, dict[What, list[JobId]]()
        queue = task = ""
        what, ids = (queue, task), list[JobId]()
        for job in jobs:
            if job.task != task or job.queue != queue:  # mostly they are alike: one record for all of them
                queue, task = what = (job.queue, job.task)
                ids = groups.setdefault(what, [])
            known[job.id] = what
            ids.append(job.id)
        while len(known) > RUNS_KEPT:
            del known[next(iter(known))]
        return [Change(JobState.RUNNING, what, ids, member) for what, ids in groups.items()]

    def settled(self, settlements: Iterable[Settlement], answers: Iterable[Answer]) -> Changes:
        """They completed. How others ended the engine has named, unless this is a repeat."""
        take, groups, others = self._known.pop, dict[What, list[JobId]](), Changes()
        for settlement, answer in zip(settlements, answers, strict=True):
            if answer is Answer.STALE:
                continue
            what = take(settlement.id, None)
            if type(settlement.outcome) is not Completed:
                if answer is Answer.ALREADY:
                    others.append(_settled(settlement, what))
            elif what is not None:
                groups.setdefault(what, []).append(settlement.id)
            else:
                others.append(Unsure(settlement.id, JobState.COMPLETED))
        told: Changes = [Change(JobState.COMPLETED, what, ids) for what, ids in groups.items()]
        return told + others

    def moved(self, moves: Moves) -> Changes:
        """What the engine has named, neighbours that are alike together."""
        told: Changes = []
        kind: tuple[object, ...] = ()
        ids: list[JobId] = []
        for job_id, state, queue, task, reason in moves.named:
            self._known.pop(job_id, None)
            if kind != (state, queue, task, reason):
                kind, ids = (state, queue, task, reason), []
                told.append(Change(state, (queue, task), ids, b"", reason))
            ids.append(job_id)
        if moves.missed:
            told.append(Missed(moves.missed))
        return told

    def completed(self, ids: Iterable[JobId]) -> Changes:
        """They completed themselves."""
        return [_certain(JobState.COMPLETED, job_id, self._known.pop(job_id, None)) for job_id in ids]


def _certain(state: JobState, job_id: JobId, what: What | None) -> Change | Unsure:
    """The state is known; what the job is may have to be asked for."""
    return Unsure(job_id, state) if what is None else Change(state, what, [job_id])


def _settled(settlement: Settlement, what: What | None) -> Unsure:
    """How an attempt ended whose outcome was recorded before, by a call without an answer."""
    job_id = settlement.id
    match settlement.outcome:
        case Failed(failure=failure, retry_in=retry_in):
            state = JobState.DEAD if retry_in is None else JobState.SCHEDULED
            return Unsure(job_id, state, _CANCELLED, what, reason_of(failure))
        case Crashed(message=message):
            return Unsure(job_id, JobState.READY, _ENDED_BADLY, what, f"crash: {message}")
        case _:
            return Unsure(job_id, JobState.CANCELLED, (), what)
