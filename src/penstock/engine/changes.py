"""What a call has changed, read from its arguments and its answer.

Mostly these say it all: what was claimed runs, what completed has completed. Where they do not (a failure of
a job that somebody cancelled meanwhile, a child of parents that may have ended) the change is *unsure*: the
record is looked at before it is told, which the teller does, later and only while somebody listens.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from penstock.model.ids import JobId
from penstock.model.job import CancelAnswer, JobState, NewJob, ReplayAnswer
from penstock.model.run import (
    Answer,
    ClaimedJob,
    Completed,
    Crashed,
    Failed,
    Loss,
    Release,
    Settlement,
    Stopped,
)
from penstock.model.time import Instant

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


Changes: TypeAlias = list[Change | Unsure]

_CANCELLED = (JobState.CANCELLED,)
_ENDED_BADLY = (JobState.CANCELLED, JobState.DEAD)
_NEW = (JobState.READY, JobState.SCHEDULED, JobState.CANCELLED)


def enqueued(jobs: Sequence[NewJob], created: Iterable[bool], now: Instant) -> Changes:
    """New jobs. `now` is an estimate of the engine's clock: a job for just that moment may be told as one
    that waits for it, or the other way round."""
    groups: dict[tuple[JobState, str, str], list[JobId]] = {}
    unsure: list[Unsure] = []
    for job, new in zip(jobs, created, strict=True):
        if not new:
            continue
        if job.after:
            unsure.append(Unsure(job.id, JobState.BLOCKED, _NEW, (job.queue, job.task)))
            continue
        later = job.delay > 0 or (job.at is not None and job.at > now)
        state = JobState.SCHEDULED if later else JobState.READY
        groups.setdefault((state, job.queue, job.task), []).append(job.id)
    told: Changes = [Change(state, (queue, task), ids) for (state, queue, task), ids in groups.items()]
    return told + unsure


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

    def settled(self, settlements: Iterable[Settlement], answers: Iterable[Answer], now: Instant) -> Changes:
        """They ended, or are tried again; and what was enqueued with that."""
        take, groups, others = self._known.pop, dict[What, list[JobId]](), Changes()
        for settlement, answer in zip(settlements, answers, strict=True):
            if answer is Answer.STALE:
                continue
            what = take(settlement.id, None)
            if what is not None and type(settlement.outcome) is Completed:
                groups.setdefault(what, []).append(settlement.id)
            else:
                others.append(_settled(settlement, what))
            if settlement.then is not None and settlement.then.jobs and answer is Answer.APPLIED:
                then = settlement.then.jobs
                others += enqueued(then, [True] * len(then), now)
        told: Changes = [Change(JobState.COMPLETED, what, ids) for what, ids in groups.items()]
        return told + others

    def completed(self, ids: Iterable[JobId]) -> Changes:
        """They completed themselves."""
        return [_certain(JobState.COMPLETED, job_id, self._known.pop(job_id, None)) for job_id in ids]

    def released(self, releases: Iterable[Release], answers: Iterable[Answer]) -> Changes:
        """They were given back."""
        told: Changes = []
        for release, answer in zip(releases, answers, strict=True):
            if answer is Answer.APPLIED:
                state = JobState.READY if release.delay is None else JobState.SCHEDULED
                told.append(Unsure(release.id, state, _CANCELLED, self._known.pop(release.id, None)))
        return told


def _certain(state: JobState, job_id: JobId, what: What | None) -> Change | Unsure:
    """The state is known; what the job is may have to be asked for."""
    return Unsure(job_id, state) if what is None else Change(state, what, [job_id])


def _settled(settlement: Settlement, what: What | None) -> Change | Unsure:
    job_id = settlement.id
    match settlement.outcome:
        case Failed(failure=failure, retry_in=retry_in):
            error = f"{failure.error or failure.kind}: {failure.message}"
            state = JobState.DEAD if retry_in is None else JobState.SCHEDULED
            return Unsure(job_id, state, _CANCELLED, what, error)
        case Crashed(message=message):
            return Unsure(job_id, JobState.READY, _ENDED_BADLY, what, f"crash: {message}")
        case Stopped():
            return _certain(JobState.CANCELLED, job_id, what)
        case _:
            return _certain(JobState.COMPLETED, job_id, what)


def lost(losses: Iterable[Loss]) -> Changes:
    """They had started in a process that died."""
    return [Unsure(loss.id, JobState.READY, _ENDED_BADLY, error=f"crash: {loss.message}") for loss in losses]


def cancelled(ids: Iterable[JobId], answers: Iterable[CancelAnswer]) -> Changes:
    """They will never start."""
    return [
        Unsure(job_id, JobState.CANCELLED)
        for job_id, answer in zip(ids, answers, strict=True)
        if answer is CancelAnswer.CANCELLED
    ]


def replayed(ids: Iterable[JobId], answers: Iterable[ReplayAnswer]) -> Changes:
    """They are ready again."""
    return [
        Unsure(job_id, JobState.READY)
        for job_id, answer in zip(ids, answers, strict=True)
        if answer is ReplayAnswer.REPLAYED
    ]
