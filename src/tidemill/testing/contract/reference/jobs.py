"""The reference for jobs: enqueue, settle, release, write, cancel, replay, drop, promote, prune."""

from collections.abc import Sequence
from copy import deepcopy

import msgspec

from tidemill.model.errors import NotUnique, UnknownParent
from tidemill.model.ids import JobId
from tidemill.model.jobs.crash import after_claimant_lost
from tidemill.model.jobs.fingerprint import as_recorded
from tidemill.model.jobs.job import (
    FINAL,
    CancelAnswer,
    DropAnswer,
    Edit,
    JobState,
    NewJob,
    ReplayAnswer,
    RunNowAnswer,
    Stored,
)
from tidemill.model.jobs.lifecycle import state_after_failure
from tidemill.model.jobs.run import (
    Answer,
    Completed,
    Crashed,
    Failed,
    Note,
    Progress,
    Release,
    Settlement,
    Started,
)
from tidemill.model.jobs.unique import REPLACING_KEPT, UniqueKey
from tidemill.model.queues.queue import TOMBSTONE_AGE, Keep
from tidemill.model.time import Instant, Span, span_of
from tidemill.testing.contract.reference.claims import promote_due
from tidemill.testing.contract.reference.records import UNSAID, ReferenceJob
from tidemill.testing.contract.reference.store import ReferenceStore, Seen, keep_of, key_of

NOT_STARTED = (JobState.BLOCKED, JobState.SCHEDULED, JobState.READY)


class ReferenceJobs:
    """Everything that changes a job, except a claim."""

    def __init__(self, store: ReferenceStore) -> None:
        self._store = store

    def enqueue(self, jobs: Sequence[NewJob], *, now: Instant) -> list[Stored]:
        if not any(new.unique for new in jobs):
            self._check_known(jobs)
            return [Stored(new.id, self._enqueue(new, now)) for new in jobs]
        before = deepcopy(vars(self._store))
        try:
            return [self._enqueue_or_meet(new, now) for new in jobs]
        except (NotUnique, UnknownParent):
            vars(self._store).update(before)
            raise

    def _check_known(self, jobs: Sequence[NewJob]) -> None:
        earlier = set(self._store.jobs)
        for new in jobs:
            if new.id not in earlier and not earlier.issuperset(new.after):
                raise UnknownParent(new.id.hex())
            earlier.add(new.id)

    def _enqueue_or_meet(self, new: NewJob, now: Instant) -> Stored:
        met = None if new.id in self._store.jobs or new.unique is None else self._meet(new, new.unique, now)
        return Stored(new.id, self._enqueue(new, now)) if met is None else Stored(met, False)

    def _meet(self, new: NewJob, unique: UniqueKey, now: Instant) -> JobId | None:
        store, key = self._store, (new.task, unique.key)
        for job in store.jobs.values():
            if new.id in job.replaced_by:
                return job.id
        if unique.period is None:
            holder = store.keys.setdefault(key, new.id)
        else:
            holder, until = store.periods.get(key, (new.id, now))
            if until <= now:
                store.periods[key] = holder, _ = new.id, now + unique.period
        if holder == new.id:
            return None
        if unique.on_conflict == "refuse":
            raise NotUnique(holder.hex())
        there = store.known(holder)
        if unique.on_conflict == "replace" and there is not None and there.state in NOT_STARTED:
            self._replace(there, new, unique, now)
        return holder

    def _replace(self, job: ReferenceJob, new: NewJob, unique: UniqueKey, now: Instant) -> None:
        due_at = new.at if new.at is not None else now + new.delay
        if unique.latest is not None:
            due_at = min(due_at, job.created_at + unique.latest)
        job.new = msgspec.structs.replace(
            job.new, body=new.body, codec=new.codec, headers=new.headers, key=new.key, priority=new.priority
        )
        job.expires_at = now + new.expires if new.expires is not None else None
        job.due_at = due_at if due_at > now else None
        job.replaced_by = [*job.replaced_by, new.id][-REPLACING_KEPT:]
        if job.state is JobState.BLOCKED:
            return
        if due_at > now:
            job.ready_at = UNSAID
            self._store.move(job, JobState.SCHEDULED)
            job.position = self._store.next_position()
        elif job.state is not JobState.READY:
            self._store.become_ready(job, now)
        elif unique.latest is None:  # no step: it goes to the end of its lane
            job.position, job.ready_at = self._store.next_position(), now

    def _enqueue(self, new: NewJob, now: Instant) -> bool:
        if new.id in self._store.jobs:
            return False
        if not self._store.jobs.keys() >= set(new.after):
            raise UnknownParent(new.id.hex())
        self._store.queue(new.queue, now)
        due_at = new.at if new.at is not None else now + new.delay
        expires_at = now + new.expires if new.expires is not None else None
        position = self._store.next_position()
        job = ReferenceJob(new, now, due_at if due_at > now else None, expires_at, position)
        self._store.jobs[new.id] = job
        doomed = self._check_parents(job)
        self._store.begin(job, now)
        if doomed:
            self._store.parent_died(job, now)
        return True

    def _check_parents(self, job: ReferenceJob) -> bool:
        """Which parents it waits for; True if one of them has died and takes it along."""
        for parent in (self._store.jobs[id_] for id_ in job.new.after):
            died = parent.state in (JobState.DEAD, JobState.CANCELLED)
            if parent.state is JobState.COMPLETED or (died and job.new.parent_died == "run"):
                continue
            job.waits.add(parent.id)
            if died and job.new.parent_died == "cancel":
                return True
        return False

    def settle(self, settlements: Sequence[Settlement], *, now: Instant) -> list[Answer]:
        return [self._settle(settlement, now) for settlement in settlements]

    def knew_longer(self, settlement: Settlement, right: Answer, answer: Answer) -> bool:
        """A settled run is known at least until its job is settled again; an engine may know it longer."""
        job = self._store.jobs.get(settlement.id)
        since = job is not None and settlement.fence in job.settled - {job.settled_fence}
        return since and (right, answer) == (Answer.STALE, Answer.ALREADY)

    def _settle(self, settlement: Settlement, now: Instant) -> Answer:
        job = self._store.running(settlement.id, settlement.fence)
        if job is None:
            known = self._store.jobs.get(settlement.id)
            already = known is not None and known.settled_fence == settlement.fence
            return Answer.ALREADY if already else Answer.STALE
        job.settled_fence = settlement.fence
        job.settled.add(settlement.fence)
        job.started_at = now - settlement.ran if job.started_at is None else job.started_at
        match settlement.outcome:
            case Completed(result=result):
                self._complete(job, result, now)
            case Failed() as failed:
                self._fail(job, failed, now)
            case Crashed():
                self._crash(job, now)
            case _:
                self._store.end(job, JobState.CANCELLED, now)
        if settlement.then is not None:
            for new in settlement.then.jobs:
                self._enqueue(new, now)
        return Answer.APPLIED

    def _complete(self, job: ReferenceJob, result: bytes | None, now: Instant) -> None:
        options = self._store.queues[job.queue].options
        job.attempts += 1
        job.result = result if options.keep_body else None
        job.has_body = options.keep_body
        self._store.end(job, JobState.COMPLETED, now)

    def _fail(self, job: ReferenceJob, failed: Failed, now: Instant) -> None:
        job.attempts += 1
        self._store.count(job, "failed", now)
        state = state_after_failure(cancel_requested=job.cancel_requested, retry=failed.retry_in is not None)
        retried = state is JobState.SCHEDULED
        filled = msgspec.structs.replace(
            as_recorded(failed.failure),
            attempt=job.attempts,
            member=job.member,
            claimed_at=job.claimed_at,
            started_at=job.started_at,
            ended_at=now,
            retry_in=failed.retry_in if retried else None,
        )
        self._store.fail(job, filled)
        if retried:
            self._store.move(job, state)
            job.due_at = now + (failed.retry_in or 0)
        else:
            self._store.end(job, state, now)

    def _crash(self, job: ReferenceJob, now: Instant) -> None:
        self._store.note_failure(job, "crash", now)
        after = after_claimant_lost(
            "crash",
            suspect=job.suspect,
            lost_runs=job.lost_runs,
            crashes=job.crashes,
            cancel_requested=job.cancel_requested,
        )
        self._store.lose(job, after, now)

    def write(self, notes: Sequence[Note], *, now: Instant) -> list[Answer]:
        return [self._write(note, now) for note in notes]

    def _write(self, note: Note, now: Instant) -> Answer:
        job = self._store.running(note.id, note.fence)
        if job is None:
            return Answer.STALE
        if isinstance(note.entry, Started) and job.started_at is None:
            job.started_at = now
        if isinstance(note.entry, Progress):
            job.progress = note.entry.value
        return Answer.APPLIED

    def release(self, releases: Sequence[Release], *, now: Instant) -> list[Answer]:
        return [self._release(release, now) for release in releases]

    def _release(self, release: Release, now: Instant) -> Answer:
        job = self._store.jobs.get(release.id)
        if job is None or job.fence != release.fence:
            return Answer.STALE
        if job.state is not JobState.RUNNING:
            return Answer.STALE if job.settled_fence == release.fence else Answer.ALREADY
        due_at = None if release.delay is None else now + release.delay
        self._store.release_run(job, now, due_at=due_at, reason=release.reason)
        return Answer.APPLIED

    def cancel(self, ids: Sequence[JobId], *, now: Instant) -> list[CancelAnswer]:
        return [self._cancel(self._store.jobs.get(job_id), now) for job_id in ids]

    def _cancel(self, job: ReferenceJob | None, now: Instant) -> CancelAnswer:
        if job is None:
            return CancelAnswer.UNKNOWN
        if job.state is JobState.RUNNING:
            job.cancel_requested = True
            return CancelAnswer.ASKED
        if job.state in NOT_STARTED:
            self._store.end(job, JobState.CANCELLED, now)
        return CancelAnswer.CANCELLED if job.state is JobState.CANCELLED else CancelAnswer.FINISHED

    def run_now(self, ids: Sequence[JobId], *, now: Instant) -> list[RunNowAnswer]:
        return [self._run_now(self._store.known(job_id), now) for job_id in ids]

    def _run_now(self, job: ReferenceJob | None, now: Instant) -> RunNowAnswer:
        if job is None:
            return RunNowAnswer.UNKNOWN
        if job.state is JobState.SCHEDULED:
            job.due_at = None
            self._store.become_ready(job, now)
        answers = {
            JobState.READY: RunNowAnswer.READY,
            JobState.BLOCKED: RunNowAnswer.BLOCKED,
            JobState.RUNNING: RunNowAnswer.RUNNING,
        }
        return answers.get(job.state or JobState.DEAD, RunNowAnswer.FINISHED)

    def replay(
        self, ids: Sequence[JobId], *, token: bytes, edit: Edit | None = None, now: Instant
    ) -> list[ReplayAnswer]:
        return [self._replay(self._store.known(job_id), token, edit, now) for job_id in ids]

    def _replay(
        self, job: ReferenceJob | None, token: bytes, edit: Edit | None, now: Instant
    ) -> ReplayAnswer:
        if job is None:
            return ReplayAnswer.UNKNOWN
        if job.token == token:
            return ReplayAnswer.REPLAYED
        if job.state not in FINAL:
            return ReplayAnswer.LIVE
        if not job.has_body:
            return ReplayAnswer.NO_BODY
        if (key := key_of(job.new)) and self._store.keys.setdefault(key, job.id) != job.id:
            return ReplayAnswer.NOT_UNIQUE
        job.attempts = job.crashes = job.lost_runs = job.snoozes = 0
        job.cancel_requested, job.result, job.progress = False, None, None
        job.ended_at = job.due_at = job.expires_at = None
        job.replays += 1
        job.token = token
        job.waits.clear()
        job.started_at = UNSAID
        if edit is not None:
            job.new = msgspec.structs.replace(job.new, body=edit.body, codec=edit.codec, key=edit.key)
        self._store.become_ready(job, now)
        return ReplayAnswer.REPLAYED

    def drop(self, ids: Sequence[JobId], *, now: Instant) -> list[DropAnswer]:
        return [self._drop(self._store.known(job_id), now) for job_id in ids]

    def _drop(self, job: ReferenceJob | None, now: Instant) -> DropAnswer:
        if job is None:
            return DropAnswer.UNKNOWN
        if job.state not in FINAL:
            return DropAnswer.LIVE
        self._store.forget([job], now)
        return DropAnswer.DROPPED

    def promote(self, *, limit: int, now: Instant, seen: Seen) -> tuple[int, Span | None]:
        """How many moved, and how long until the next due time. Which ones move when there are more
        than `limit` is seen, not predicted, except that of one queue the earliest due move first."""
        store = self._store
        expired = [job for job in store.in_state(*NOT_STARTED) if job.expired(now)]
        gone = [job for job in expired if (shown := seen.get(job.id)) and shown.state is JobState.DEAD]
        due = [job for job in store.in_state(JobState.SCHEDULED) if job.due(now) and not job.expired(now)]
        assert len(gone) == min(len(expired), limit), f"{len(gone)} of {len(expired)} expired jobs are dead"
        for job in gone:
            store.expire(job, now)
        bounded = len(due) + len(expired) - len(gone) > limit
        queues = sorted(store.queues)
        moved = [job for queue in queues for job in promote_due(store, queue, now, seen, optional=bounded)]
        left = [job for job in due if job not in moved]
        assert len(moved) <= limit, f"{len(moved)} became ready, the bound was {limit}"
        assert not left or len(moved) == limit, f"{len(moved)} of {len(due)} due jobs became ready"
        self._check_earliest_first(moved, left)
        ahead = [job.due_at for job in store.in_state(JobState.SCHEDULED) if job.due_at is not None]
        wait = max(0, min(ahead) - now) if ahead else None
        return len(moved) + len(gone), 0 if len(moved) == limit or len(gone) == limit else wait

    @staticmethod
    def _check_earliest_first(moved: Sequence[ReferenceJob], left: Sequence[ReferenceJob]) -> None:
        for job in moved:
            late = [
                other
                for other in left
                if other.queue == job.queue and (other.due_at or 0) < (job.due_at or 0)
            ]
            assert not late, f"{job.id.hex()} became ready before {late[0].id.hex()}, which was due earlier"

    def prune(self, *, limit: int, now: Instant, seen: Seen, tombstones: Seen, jobs: int, more: bool) -> None:
        """Judge the answer (`jobs`, `more`): which jobs and tombstones went is seen."""
        store = self._store
        beyond = self._beyond_retention(now)
        deleted = [job for job in store.in_state(*FINAL) if seen.get(job.id) is None]
        self._check_oldest_first(deleted)
        assert len(deleted) <= min(limit, beyond), f"{len(deleted)} pruned, {beyond} beyond retention"
        store.forget(deleted, now)
        old = [job for job in store.jobs.values() if job.tombstone and now - _ended(job) >= TOMBSTONE_AGE]
        swept = [job for job in old if tombstones.get(job.id) is None]
        store.forget(swept, now)
        left = beyond - len(deleted) + len(old) - len(swept)
        done = len(deleted) + len(swept)
        assert len(deleted) <= jobs <= done, f"{done} were pruned, the answer says {jobs}"
        assert not left or done >= limit, f"{left} beyond retention were left"
        assert more or not left, f"{left} beyond retention were left, the answer says no more"
        assert not more or done >= limit, "the bound was not reached, the answer says more"

    def _check_oldest_first(self, deleted: Sequence[ReferenceJob]) -> None:
        for job in deleted:
            kept = [other for other in self._store.in_state(*FINAL) if other not in deleted]
            older = [
                other
                for other in kept
                if (other.queue, other.state) == (job.queue, job.state) and _ended(other) < _ended(job)
            ]
            assert not older, f"{job.id.hex()} was pruned before {older[0].id.hex()}, which ended earlier"

    def _beyond_retention(self, now: Instant) -> int:
        """How many finished jobs their queues no longer keep."""
        beyond = 0
        for queue in self._store.queues.values():
            for state in FINAL:
                finished = [job for job in self._store.in_state(state) if job.queue == queue.name]
                beyond += len(finished) - _kept(finished, keep_of(queue.options, state), now)
        return beyond


def _kept(finished: Sequence[ReferenceJob], keep: Keep, now: Instant) -> int:
    """How many of these stay: the younger than the age, and no more than the count."""
    young = [job for job in finished if keep.age is None or now - _ended(job) < span_of(keep.age)]
    return len(young) if keep.count is None else min(len(young), keep.count)


def _ended(job: ReferenceJob) -> Instant:
    assert job.ended_at is not None
    return job.ended_at
