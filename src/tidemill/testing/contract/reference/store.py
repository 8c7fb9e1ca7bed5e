"""The moves that the facets of the reference have in common."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import count as count_from
from typing import TypeAlias

from tidemill.model.ids import JobId, handler_id
from tidemill.model.jobs.crash import AfterLostRun
from tidemill.model.jobs.job import FINAL, Failure, FailureKind, JobRecord, JobState, NewJob
from tidemill.model.jobs.lifecycle import check_step, state_after_release
from tidemill.model.jobs.retry import Retry
from tidemill.model.queues.lane import group_of
from tidemill.model.queues.queue import KEEP_ENDED, Keep, QueueOptions
from tidemill.model.time import MINUTE, Instant
from tidemill.model.view import TaskEntry
from tidemill.testing.contract.reference.records import (
    UNSAID,
    ClaimantRecord,
    QueueRecord,
    ReferenceJob,
    ReferenceMember,
)

Seen: TypeAlias = Mapping[JobId, JobRecord | None]
"""What the engine shows of each job after a call; None: not there."""


TaskKey: TypeAlias = tuple[str, str]
"""A task and a unique key."""


def key_of(new: NewJob) -> TaskKey | None:
    """The key that a job holds while it is live; None: it has none, or one of a period."""
    if new.unique is None or new.unique.period is not None:
        return None
    return new.task, new.unique.key


def keep_of(options: QueueOptions, state: JobState) -> Keep:
    """How long a queue keeps the jobs of a final state."""
    if state is JobState.COMPLETED:
        return options.keep_completed or KEEP_ENDED
    return options.keep_dead if state is JobState.DEAD else options.keep_cancelled or KEEP_ENDED


class ReferenceStore:
    """Everything that is remembered."""

    def __init__(self) -> None:
        self.jobs: dict[JobId, ReferenceJob] = {}
        """Jobs and tombstones, in the order in which they were stored."""
        self.queues: dict[str, QueueRecord] = {}
        self.members: dict[bytes, ReferenceMember] = {}
        self.claimants: dict[bytes, ClaimantRecord] = {}
        self.finished: Counter[tuple[str, Instant, str]] = Counter()
        """By queue, minute and "completed", "failed", "died", "cancelled"."""
        self.tasks: dict[str, TaskEntry] = {}
        """The catalogue, each entry with its pause."""
        self.once_paused: set[str] = set()
        """Tasks whose jobs may stand aside because of a pause."""
        self.handlers: dict[JobId, ReferenceJob] = {}
        """Which death each handler was stored for."""
        self.keys: dict[TaskKey, JobId] = {}
        """Unique keys that jobs hold."""
        self.periods: dict[TaskKey, tuple[JobId, Instant]] = {}
        """Unique keys of periods: the job, and until when."""
        self.options = 0
        """How often the options in force of some queue changed."""
        self.top_fence = 0
        self.top_heartbeat = 0
        self.positions = 0
        """The last position given."""
        self.cascades = 0
        """How many children were cancelled because a parent did not complete: they may have children too."""

    def known(self, job_id: JobId) -> ReferenceJob | None:
        """The job, unless it is gone or only a tombstone."""
        job = self.jobs.get(job_id)
        return None if job is None or job.tombstone else job

    def in_state(self, *states: JobState) -> list[ReferenceJob]:
        """The jobs in these states, in the order of their positions."""
        found = [job for job in self.jobs.values() if job.state in states and not job.tombstone]
        return sorted(found, key=lambda job: job.position)

    def running(self, job_id: JobId, fence: int) -> ReferenceJob | None:
        """The job, if it runs under exactly this fence."""
        job = self.known(job_id)
        return job if job and job.state is JobState.RUNNING and job.fence == fence else None

    def held_by(self, claimant: bytes) -> list[ReferenceJob]:
        """What a claimant runs, in the order in which it was taken."""
        held = [job for job in self.in_state(JobState.RUNNING) if job.claimant == claimant]
        return sorted(held, key=lambda job: job.fence or 0)

    def held_by_member(self, member: bytes) -> list[ReferenceJob]:
        """What the claimants of a member run."""
        claimants = [name for name, claimant in self.claimants.items() if claimant.member == member]
        return [job for claimant in claimants for job in self.held_by(claimant)]

    def queue(self, name: str, now: Instant) -> QueueRecord:
        """The queue; it comes into being if there is none."""
        return self.queues.setdefault(name, QueueRecord(name, now))

    def passed_over(self, unknown: Iterable[str]) -> set[str]:
        """The tasks of which a claim takes no job that names these as unknown."""
        return {*unknown, *(task.name for task in self.tasks.values() if task.paused_at is not None)}

    def group(self, job: ReferenceJob) -> str:
        """The group of a job under the options of this moment."""
        return group_of(self.queues[job.queue].options, job.new.task, job.new.key)

    def next_position(self) -> int:
        self.positions += 1
        return self.positions

    def adopt_order(self, mark: int, seen: Seen) -> None:
        """Several jobs became ready in one step, since position `mark`, in an order that the contract
        does not fix: take the engine's."""
        fresh = [job for job in self.in_state(JobState.READY) if job.position > mark and seen.get(job.id)]
        positions = [job.position for job in fresh]
        fresh.sort(key=lambda job: shown.seq if (shown := seen[job.id]) else 0)
        for job, position in zip(fresh, positions, strict=True):
            job.position = position

    def adopt_replaced(self, mark: int, seen: Seen) -> None:
        """Jobs of one call, of which some may have been replaced in the same call: take the engine's
        order."""
        fresh = [
            job
            for job in self.in_state(JobState.READY, JobState.SCHEDULED)
            if job.position > mark and seen.get(job.id)
        ]
        if not any(job.replaced_by for job in fresh):
            return
        positions = [job.position for job in fresh]
        fresh.sort(key=lambda job: shown.seq if (shown := seen[job.id]) else 0)
        for job, position in zip(fresh, positions, strict=True):
            job.position = position

    def move(self, job: ReferenceJob, state: JobState) -> None:
        """Take one step of the life of a job."""
        check_step(job.state, state)
        self._hold_or_free(job, state)
        if job.state is JobState.RUNNING:
            job.claimant = None
        job.state = state

    def _hold_or_free(self, job: ReferenceJob, state: JobState) -> None:
        """What a move means for its unique key."""
        if job.new.unique is None or (key := key_of(job.new)) is None:
            return
        starts = state is JobState.RUNNING and job.new.unique.until == "start"
        if (state in FINAL or starts) and self.keys.get(key) == job.id:
            del self.keys[key]
        elif job.state is JobState.RUNNING and state not in FINAL:
            self.keys.setdefault(key, job.id)

    def become_ready(self, job: ReferenceJob, now: Instant) -> None:
        """To the end of its lane."""
        self.move(job, JobState.READY)
        job.position = self.next_position()
        job.ready_at = now

    def begin(self, job: ReferenceJob, now: Instant) -> None:
        """A new or unblocked job: to its parents, its due time or its lane."""
        if job.waits:
            self.move(job, JobState.BLOCKED)
        elif job.due(now):
            self.become_ready(job, now)
        else:
            self.move(job, JobState.SCHEDULED)

    def end(self, job: ReferenceJob, state: JobState, now: Instant) -> None:
        """To a final state; its children are updated."""
        self.move(job, state)
        job.ended_at, job.reason = now, None
        self.count(job, "died" if state is JobState.DEAD else state.value, now)
        if state is JobState.DEAD and job.new.on_dead is not None:
            self.leave_handler(job, job.new.on_dead, now)
        self.update_children(job, now)
        job.tombstone = keep_of(self.queues[job.queue].options, state).nothing

    def leave_handler(self, dead: ReferenceJob, name: str, now: Instant) -> None:
        """A job of the dead one's handler; what it carries is compared part by part."""
        entry = self.tasks.get(name) or TaskEntry(name=name, queue=dead.queue)
        new = NewJob(
            id=self.next_handler(dead),
            task=name,
            queue=entry.queue,
            priority=entry.priority,
            key=dead.new.key,
            timeout=entry.timeout,
            attempts=(entry.retry or Retry()).attempts,
        )
        self.queue(new.queue, now)
        handler = ReferenceJob(new, now, None, None, self.next_position())
        self.jobs[new.id] = handler
        self.handlers[new.id] = replace(dead, failures=list(dead.failures))
        self.become_ready(handler, now)

    def next_handler(self, job: ReferenceJob) -> JobId:
        """The id that the handler of its next death will have."""
        ids = (handler_id(job.id, number) for number in count_from(job.replays))
        return next(job_id for job_id in ids if job_id not in self.jobs)

    def possible_handlers(self) -> list[JobId]:
        """The handlers that are there, and those of the next deaths."""
        mortal = [job for job in self.jobs.values() if job.new.on_dead is not None]
        return list({**self.handlers, **{self.next_handler(job): None for job in mortal}})

    def adopt_handlers(self, mark: int, seen: Seen) -> None:
        """Of several that died in one step, the order of the handlers is not fixed: take the engine's."""
        fresh = [
            job for job in self.in_state(JobState.READY) if job.id in self.handlers and job.position > mark
        ]
        positions = [job.position for job in fresh]
        fresh.sort(key=lambda job: shown.seq if (shown := seen.get(job.id)) else 0)
        for job, position in zip(fresh, positions, strict=True):
            job.position = position

    def count(self, job: ReferenceJob, what: str, now: Instant) -> None:
        self.finished[job.queue, now - now % MINUTE, what] += 1

    def fail(self, job: ReferenceJob, failure: Failure) -> None:
        """Append to the failures. Numbers go on over replays."""
        job.failures.append(failure)

    def note_failure(self, job: ReferenceJob, kind: FailureKind, now: Instant) -> None:
        """A failure that the engine words itself."""
        self.fail(job, Failure(kind=kind, fingerprint=kind, ended_at=now))

    def expire(self, job: ReferenceJob, now: Instant) -> None:
        """Not started in time."""
        job.ready_at = UNSAID  # a claim may have made it ready on the way
        self.note_failure(job, "expired", now)
        self.end(job, JobState.DEAD, now)

    def release_run(
        self, job: ReferenceJob, now: Instant, *, due_at: Instant | None = None, reason: str | None = None
    ) -> None:
        """A run ends without an outcome: to its old position, or to a later time."""
        state = state_after_release(cancel_requested=job.cancel_requested, delayed=due_at is not None)
        if state is JobState.CANCELLED:
            self.end(job, state, now)
        else:
            self.move(job, state)
            job.due_at = job.due_at if due_at is None else due_at
            job.ready_at = now if state is JobState.READY else job.ready_at
            job.reason = reason
            job.snoozes += reason == "snooze"
        job.started_at = UNSAID

    def lose(self, job: ReferenceJob, after: AfterLostRun, now: Instant) -> None:
        """A run was lost: back to its position, or to its end."""
        job.suspect, job.lost_runs, job.crashes = after.suspect, after.lost_runs, after.crashes
        if after.state is JobState.READY:
            self.release_run(job, now)
        else:
            self.end(job, after.state, now)
            job.started_at = UNSAID

    def update_children(self, parent: ReferenceJob, now: Instant) -> None:
        """A parent has ended."""
        for child in self.waiting_for(parent.id):
            if parent.state is JobState.COMPLETED or child.new.parent_died == "run":
                self.parent_done(child, parent.id, now)
            elif child.new.parent_died == "cancel":
                self.parent_died(child, now)

    def waiting_for(self, parent: JobId) -> list[ReferenceJob]:
        """The blocked children of a job, in the order in which they were stored."""
        return [job for job in self.in_state(JobState.BLOCKED) if parent in job.waits]

    def parent_done(self, child: ReferenceJob, parent: JobId, now: Instant) -> None:
        child.waits.discard(parent)
        if not child.waits:
            self.begin(child, now)

    def parent_died(self, child: ReferenceJob, now: Instant) -> None:
        if child.state is JobState.BLOCKED:
            self.cascades += 1
            self.note_failure(child, "parent", now)
            self.end(child, JobState.CANCELLED, now)

    def forget(self, jobs: Iterable[ReferenceJob], now: Instant) -> None:
        """Delete finished jobs; no job can wait for them any more."""
        for job in jobs:
            assert job.state in FINAL, f"a job that is {job.state} was deleted"
            del self.jobs[job.id]
            for child in self.waiting_for(job.id):
                self.parent_died(child, now)
