"""What a call has changed: read from its arguments, its answer and the moves that the engine named.

Mostly these say everything: a job that was claimed runs, a job that completed has completed. Only a run that
was claimed before the first listener came needs the job's record. The emitter reads it later, before it
publishes the change, and only while there are listeners (`detail`).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobState, NewJob, Stored
from tidemill.model.jobs.move import Moves, reason_of
from tidemill.model.jobs.run import (
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
    """This job came into a state that only its record shows."""

    id: JobId
    otherwise: JobState
    """The state, unless the record shows one of `unless`."""
    unless: tuple[JobState, ...] = ()
    what: What | None = None
    error: str = ""


class Missed(NamedTuple):
    """Here changes are missing."""

    number: int | None
    """How many; None: not known."""


Changes: TypeAlias = list[Change | Unsure | Missed]

_CANCELLED = (JobState.CANCELLED,)
_ENDED_BADLY = (JobState.CANCELLED, JobState.DEAD)


def enqueued(jobs: Sequence[NewJob], stored: Iterable[Stored], now: Instant) -> Changes:
    """New jobs without parents; the engine names the others. `now` is an estimate of the engine's clock: a
    job that is due at just that moment may be emitted as scheduled when it is ready, or the other way
    round."""
    groups: dict[tuple[JobState, str, str], list[JobId]] = {}
    for job, answer in zip(jobs, stored, strict=True):
        if not answer.created or job.after:
            continue
        later = job.delay > 0 or (job.at is not None and job.at > now)
        state = JobState.SCHEDULED if later else JobState.READY
        groups.setdefault((state, job.queue, job.task), []).append(job.id)
    return [Change(state, (queue, task), ids) for (state, queue, task), ids in groups.items()]


class KnownRuns:
    """The queues and tasks of what this process runs: a settlement does not name them."""

    def __init__(self) -> None:
        self._known: dict[JobId, What] = {}

    def forget(self) -> None:
        """There are no listeners."""
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
        """They completed. The engine has named how the others ended, unless this is a repeat."""
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
        found: Changes = [Change(JobState.COMPLETED, what, ids) for what, ids in groups.items()]
        return found + others

    def moved(self, moves: Moves) -> Changes:
        """What the engine has named. Neighbours that are alike become one change."""
        found: Changes = []
        kind: tuple[object, ...] = ()
        ids: list[JobId] = []
        for job_id, state, queue, task, reason in moves.named:
            self._known.pop(job_id, None)
            if kind != (state, queue, task, reason):
                kind, ids = (state, queue, task, reason), []
                found.append(Change(state, (queue, task), ids, b"", reason))
            ids.append(job_id)
        if moves.missed:
            found.append(Missed(moves.missed))
        return found

    def completed(self, ids: Iterable[JobId]) -> Changes:
        """They completed themselves."""
        return [_certain(JobState.COMPLETED, job_id, self._known.pop(job_id, None)) for job_id in ids]


def _certain(state: JobState, job_id: JobId, what: What | None) -> Change | Unsure:
    """The state is known; queue and task may have to be read from the record."""
    return Unsure(job_id, state) if what is None else Change(state, what, [job_id])


def _settled(settlement: Settlement, what: What | None) -> Unsure:
    """How an attempt ended whose outcome an earlier call recorded, one that got no answer."""
    job_id = settlement.id
    match settlement.outcome:
        case Failed(failure=failure, retry_in=retry_in):
            state = JobState.DEAD if retry_in is None else JobState.SCHEDULED
            return Unsure(job_id, state, _CANCELLED, what, reason_of(failure))
        case Crashed(message=message):
            return Unsure(job_id, JobState.READY, _ENDED_BADLY, what, f"crash: {message}")
        case _:
            return Unsure(job_id, JobState.CANCELLED, (), what)
