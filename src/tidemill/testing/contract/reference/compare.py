"""What an engine shows, against what it should show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from tidemill.model.ids import JobId, show_id
from tidemill.model.jobs.death import DeadJob, said
from tidemill.model.jobs.job import FINAL, FIRST_KEPT, LAST_KEPT, LIVE, STATES, Failure, JobRecord, JobState
from tidemill.model.member import MemberRecord, health
from tidemill.model.queues.layers import effective
from tidemill.model.time import MINUTE, Instant, Span
from tidemill.model.view import DeadGroup, Finished, QueueCounts, QueueInfo, TaskEntry
from tidemill.testing.contract.reference.records import UNSAID, ReferenceJob
from tidemill.testing.contract.reference.store import ReferenceStore


@dataclass(frozen=True)
class View:
    """Everything observable, read after a call."""

    now: Instant
    window: Span
    jobs: Mapping[JobId, JobRecord | None]
    """Of every id ever used; tombstones and unknown ones are None."""
    tombstones: Mapping[JobId, JobRecord | None]
    """The answer of `watch` for those that are None above."""
    counts: Sequence[QueueCounts]
    queues: Sequence[QueueInfo]
    members: Sequence[MemberRecord]
    groups: Sequence[DeadGroup]
    tasks: Sequence[TaskEntry]

    @property
    def known(self) -> Mapping[JobId, JobRecord | None]:
        """Jobs, and tombstones in place of those that are nothing more."""
        return {**self.jobs, **self.tombstones}


def differences(store: ReferenceStore, view: View) -> list[str]:
    """Every difference, in words; empty if there is none."""
    return [
        *(f"job {line}" for line in _jobs(store, view)),
        *(f"order {line}" for line in _order(store, view)),
        *(f"counts {line}" for line in _counts(store, view)),
        *(f"queues {line}" for line in _queues(store, view)),
        *(f"members {line}" for line in _members(store, view)),
        *(f"groups {line}" for line in _groups(store, view)),
        *(f"tasks {line}" for line in _tasks(store, view)),
    ]


def _jobs(store: ReferenceStore, view: View) -> Iterator[str]:
    for job_id, shown in view.jobs.items():
        job = store.known(job_id)
        if job is None or shown is None:
            if (job is None) is not (shown is None):
                yield f"{job_id.hex()}: shown {shown and shown.state}, should be {job and job.state}"
            continue
        expected = _expected(job)
        if job_id in store.handlers and job.has_body:
            del expected["body"]
        for name, value in expected.items():
            if getattr(shown, name) != value:
                yield f"{job_id.hex()}: {name} is {getattr(shown, name)!r}, should be {value!r}"
        yield from (f"{job_id.hex()}: {line}" for line in _failures(job, shown))
        if job_id in store.handlers and shown.body is not None:
            yield from (f"{job_id.hex()}: {line}" for line in _carried(store.handlers[job_id], shown.body))
    for job_id, shown in view.tombstones.items():
        job = store.jobs.get(job_id)
        known = job and (job.state, job.settled_fence)
        if known != (shown and (shown.state, shown.settled_fence)):
            yield f"{job_id.hex()}: tombstone {shown and shown.state}, should be {known}"


def _expected(job: ReferenceJob) -> dict[str, object]:
    """The fields on which the contract leaves no choice."""
    fields: dict[str, object] = {
        "task": job.new.task,
        "queue": job.queue,
        "priority": job.new.priority,
        "key": job.new.key,
        "state": job.state,
        "attempts": job.attempts,
        "max_attempts": job.new.attempts,
        "crashes": job.crashes,
        "lost_runs": job.lost_runs,
        "suspect": job.suspect,
        "replays": job.replays,
        "created_at": job.created_at,
        "claimed_at": job.claimed_at,
        "ended_at": job.ended_at if job.state in FINAL else None,
        "member": job.member,
        "settled_fence": job.settled_fence,
        "reason": job.reason,
        "unique": None if job.new.unique is None else job.new.unique.key,
        "snoozes": job.snoozes,
        "body": job.new.body if job.has_body else None,
        "result": job.result,
        "progress": job.progress,
        "failure_count": len(job.failures),
    }
    if job.due_at is not None or job.replays:
        fields["due_at"] = job.due_at
    if job.state in LIVE:
        fields["cancel_requested"] = job.cancel_requested
        fields["expires_at"] = job.expires_at
    if job.state is JobState.BLOCKED:
        fields["waits_for"] = len(job.waits)
    if job.state is JobState.RUNNING:
        fields["fence"] = job.fence
    for name in ("ready_at", "started_at"):
        if getattr(job, name) != UNSAID and job.state is not JobState.BLOCKED:
            fields[name] = getattr(job, name)
    return fields


def _failures(job: ReferenceJob, shown: JobRecord) -> Iterator[str]:
    last = len(job.failures)
    numbers = [at for at in range(1, last + 1) if at <= FIRST_KEPT or at > last - LAST_KEPT]
    if [failure.number for failure in shown.failures] != numbers:
        yield f"failures {[failure.number for failure in shown.failures]}, should be {numbers}"
        return
    for failure in shown.failures:
        right = job.failures[failure.number - 1]
        if _said(failure, right) != _said(right, right):
            yield f"failure {failure.number} is {failure}, should be {right}"
    if shown.error != (shown.failures[-1] if shown.failures else None):
        yield f"error is {shown.error}, should be the last failure"


def _carried(dead: ReferenceJob, body: bytes) -> Iterator[str]:
    """What a handler's job tells of the one that died."""
    ((dead_job,), named) = msgspec.json.decode(body, type=tuple[tuple[DeadJob], dict[str, None]])
    last = dead.failures[-1]
    right = {
        "id": show_id(dead.id),
        "task": dead.new.task,
        "queue": dead.queue,
        "key": dead.new.key,
        "attempts": dead.attempts,
        "crashes": dead.crashes,
        "replays": dead.replays,
        "body": dead.new.body.decode(),
        "failure": said(last)
        if last.attempt
        else dead_job.failure,  # the engine's own words are not compared
    }
    for name, value in right.items():
        if getattr(dead_job, name) != value:
            yield f"tells {name} {getattr(dead_job, name)!r}, should be {value!r}"
    if dead_job.failure.kind != last.kind or named:
        yield f"tells of {dead_job.failure} and {named}, should be {last}"


def _said(failure: Failure, right: Failure) -> tuple[object, ...]:
    """What is compared: everything for a failure that the caller gave, little for the engine's own."""
    if not right.attempt:
        return (failure.kind, failure.ended_at, failure.fingerprint)
    return (
        failure.kind,
        failure.error,
        failure.message,
        failure.traceback,
        failure.fingerprint,
        failure.attempt,
        failure.member,
        failure.claimed_at,
        failure.started_at,
        failure.ended_at,
        failure.retry_in,
    )


def _order(store: ReferenceStore, view: View) -> Iterator[str]:
    """In each queue and priority, ready jobs stand in the order in which they became ready."""
    ready = [job for job in store.in_state(JobState.READY) if view.jobs.get(job.id)]
    for queue, priority in sorted({(job.queue, job.new.priority) for job in ready}):
        right = [job.id for job in ready if (job.queue, job.new.priority) == (queue, priority)]
        seqs = {job_id: shown.seq for job_id in right if (shown := view.jobs[job_id])}
        if sorted(right, key=seqs.__getitem__) != right or len(set(seqs.values())) != len(right):
            yield f"of {queue!r}, priority {priority}: should be {[(id_.hex(), seqs[id_]) for id_ in right]}"


def _counts(store: ReferenceStore, view: View) -> Iterator[str]:
    if [each.queue for each in view.counts] != sorted(store.queues):
        yield f"of queues {[each.queue for each in view.counts]}, should be {sorted(store.queues)}"
        return
    for each in view.counts:
        for state in STATES:
            right = sum(job.queue == each.queue for job in store.in_state(state))
            if each.in_state(state) != right:
                yield f"of {each.queue!r}: {each.in_state(state)} {state}, should be {right}"
        yield from _oldest_ready(store, each)
        finished = window_of(store, each.queue, view.window, view.now)
        if each.window != finished:
            yield f"of {each.queue!r}: {each.window}, should be {finished}"


def _oldest_ready(store: ReferenceStore, counts: QueueCounts) -> Iterator[str]:
    """The oldest is at the head of some lane. However the lanes are cut, the first job of all is at the head
    of its lane."""
    ready = [job for job in store.in_state(JobState.READY) if job.queue == counts.queue]
    moments = [job.ready_at for job in ready if job.ready_at is not None and job.ready_at != UNSAID]
    if not ready:
        if counts.oldest_ready_at is not None:
            yield f"of {counts.queue!r}: a job is ready since {counts.oldest_ready_at}, should be none"
    elif len(moments) == len(ready):
        first = min(ready, key=lambda job: job.position).ready_at
        shown, least = counts.oldest_ready_at, min(moments)
        if shown is None or first is None or not least <= shown <= first:
            yield f"of {counts.queue!r}: the oldest is ready since {shown}, should be {least} to {first}"


def window_of(store: ReferenceStore, queue: str, window: Span, now: Instant) -> Finished:
    """What ended in the last whole minutes, the current one included."""
    first = now - now % MINUTE - (max(1, window // MINUTE) - 1) * MINUTE
    sums = dict.fromkeys(("completed", "failed", "died", "cancelled"), 0)
    for (name, minute, what), count in store.finished.items():
        if name == queue and minute >= first:
            sums[what] += count
    return Finished(**sums)


def _queues(store: ReferenceStore, view: View) -> Iterator[str]:
    right = [
        QueueInfo(
            name=queue.name,
            options=queue.options,
            created_at=queue.created_at,
            paused_at=queue.paused_at,
            paused_by=queue.paused_by,
            paused_why=queue.paused_why,
            declared=queue.layers.declared,
            overrides=queue.layers.overrides,
            version=queue.version,
            problems=effective(queue.layers).problems,
        )
        for _, queue in sorted(store.queues.items())
    ]
    if list(view.queues) != right:
        yield f"are {view.queues}, should be {right}"


def _members(store: ReferenceStore, view: View) -> Iterator[str]:
    right = [
        MemberRecord(
            info=record.info,
            since=record.since,
            heartbeat_at=record.heartbeat_at,
            steady_since=record.steady_since,
            health=health(record.info, record.heartbeat_at, view.now),
            running=len(store.held_by_member(record.info.id)),
        )
        for record in sorted(store.members.values(), key=lambda record: record.info.name)
    ]
    if list(view.members) != right:
        yield f"are {view.members}, should be {right}"


def _tasks(store: ReferenceStore, view: View) -> Iterator[str]:
    right = [entry for _, entry in sorted(store.tasks.items())]
    if list(view.tasks) != right:
        yield f"are {view.tasks}, should be {right}"


def _groups(store: ReferenceStore, view: View) -> Iterator[str]:
    dead: dict[tuple[str, str, str], list[ReferenceJob]] = {}
    for job in store.in_state(JobState.DEAD):
        dead.setdefault((job.queue, job.new.task, job.failures[-1].fingerprint), []).append(job)
    if (names := [(each.queue, each.task, each.fingerprint) for each in view.groups]) != sorted(dead):
        yield f"are {names}, should be {sorted(dead)}"
        return
    for each in view.groups:
        jobs = dead[each.queue, each.task, each.fingerprint]
        ends = [job.ended_at or 0 for job in jobs]
        shown = each.count, each.first_at, each.last_at
        if shown != (right := (len(jobs), min(ends), max(ends))):
            yield f"of {each.queue!r}: {each.name} has {shown}, should be {right}"
        newest = {job.id: job.failures[-1].kind for job in jobs if job.ended_at == each.last_at}
        if newest.get(each.sample) != each.kind:
            yield f"of {each.queue!r}: {each.name} shows {each.sample.hex()}, should be of {newest}"
