"""From records to the shapes that `--json` prints."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from tidemill.cli.output.shapes import (
    DeadGroupShape,
    DoctorShape,
    EventShape,
    FailureShape,
    FinishedShape,
    GapShape,
    HolderShape,
    JobShape,
    MemberShape,
    OverrideShape,
    PartShape,
    Payload,
    ProcessShape,
    QueueShape,
    ReasonShape,
    ScaleShape,
    ScheduleShape,
    Seconds,
    StatsShape,
    TaskShape,
    TimesShape,
    WarningShape,
)
from tidemill.cli.output.text import rfc3339
from tidemill.model.event import Event, Gap
from tidemill.model.ids import show_id
from tidemill.model.jobs.fingerprint import plain_message
from tidemill.model.jobs.job import Failure, JobRecord
from tidemill.model.member import MemberRecord, detail_of, knows_task
from tidemill.model.queues.layers import Layers, declared_fields
from tidemill.model.scaling.demand import Demand
from tidemill.model.schedules.schedule import Cron, Every, Schedule
from tidemill.model.schedules.spoken import state_of, words_of
from tidemill.model.stats.histogram import Histogram
from tidemill.model.stats.series import StatsPoint
from tidemill.model.storage import Storage, StorageWarning
from tidemill.model.time import SECOND, Instant, Span
from tidemill.model.view import DeadGroup, Finished, QueueCounts, QueueInfo, TaskEntry


def seconds_of(span: Span | None) -> Seconds:
    return None if span is None else span / SECOND


def failure_shape(failure: Failure) -> FailureShape:
    return FailureShape(
        kind=failure.kind,
        error=failure.error,
        message=failure.message,
        traceback=failure.traceback,
        fingerprint=failure.fingerprint,
        attempt=failure.attempt,
        number=failure.number,
        worker=failure.member,
        claimed_at=rfc3339(failure.claimed_at),
        started_at=rfc3339(failure.started_at),
        ended_at=rfc3339(failure.ended_at),
        retry_in_s=seconds_of(failure.retry_in),
    )


_SAME = ("task", "queue", "priority", "key", "max_attempts", "crashes", "suspect")
_SAME_TOO = ("replays", "waits_for", "on_dead", "schedule", "unique", "reason", "snoozes", "failure_count")
_TIMES = ("created_at", "due_at", "ready_at", "claimed_at", "started_at", "ended_at", "expires_at")


def job_shape(job: JobRecord, *, whole: bool = False, why: list[ReasonShape] | UnsetType = UNSET) -> JobShape:
    """A job for machines; `whole` with what only `inspect.get` knows."""
    parts: dict[str, Any] = {name: getattr(job, name) for name in (*_SAME, *_SAME_TOO)}
    parts |= {name: rfc3339(getattr(job, name)) for name in _TIMES}
    if whole:
        parts |= {
            "headers": json_of(job.headers),
            "payload": payload_of(job),
            "result": json_of(job.result),
            "failures": [failure_shape(failure) for failure in job.failures],
            "why": why,
        }
    return JobShape(
        id=show_id(job.id),
        state=job.state.value,
        attempts=job.attempts_begun,
        losses=job.lost_runs,
        cancel_asked=job.cancel_requested,
        timeout_s=seconds_of(job.timeout),
        worker=job.member or None,
        progress=json_of(job.progress),
        error=failure_shape(job.error) if job.error else None,
        group=job.dead_group,
        **parts,
    )


def group_shape(group: DeadGroup) -> DeadGroupShape:
    """A dead-letter group for machines."""
    return DeadGroupShape(
        group=group.name,
        queue=group.queue,
        task=group.task,
        count=group.count,
        first_at=rfc3339(group.first_at),
        last_at=rfc3339(group.last_at),
        sample=show_id(group.sample),
        kind=group.kind,
        error=group.error,
        message=group.message,
        pattern=plain_message(group.message),
        age_s=group.age / SECOND,
    )


def json_of(text: bytes | None) -> Any:
    """Stored JSON; what cannot be read is shown as text rather than hidden."""
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return text.decode(errors="backslashreplace")


def payload_of(job: JobRecord) -> Payload | None:
    """The arguments, if they are there and readable (codec 1 is plain JSON)."""
    if job.body is None or job.codec != 1:
        return None
    try:
        return Payload(*msgspec.json.decode(job.body, type=tuple[list[Any], dict[str, Any]]))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def stats_shape(counts: QueueCounts, window: Span, times: StatsPoint, now: Instant) -> StatsShape:
    """`times`: the whole window as one step."""
    ended: Finished = counts.window
    return StatsShape(
        queue=counts.queue,
        ready=counts.ready,
        scheduled=counts.scheduled,
        running=counts.running,
        blocked=counts.blocked,
        completed=counts.completed,
        dead=counts.dead,
        cancelled=counts.cancelled,
        window_s=window / SECOND,
        window=FinishedShape(ended.completed, ended.failed, ended.died, ended.cancelled),
        age_s=counts.age / SECOND,
        oldest_ready_s=_seconds(oldest_ready(counts, now)),
        oldest_in_window_s=_seconds(times.oldest_ready),
        arrived=times.arrived,
        wait=_times(times.wait),
        run=_times(times.run),
    )


def oldest_ready(counts: QueueCounts, now: Instant) -> Span | None:
    """How long the oldest ready job waits."""
    return None if counts.oldest_ready_at is None else max(0, now - counts.oldest_ready_at)


def _seconds(span: Span | None) -> float | None:
    return None if span is None else span / SECOND


def _times(histogram: Histogram) -> TimesShape:
    shares = (_seconds(histogram.percentile(share)) for share in (0.5, 0.9, 0.95, 0.99))
    return TimesShape(histogram.count, *shares)


def queue_shape(queue: QueueInfo) -> QueueShape:
    return QueueShape(
        name=queue.name,
        options=msgspec.to_builtins(queue.options),
        created_at=rfc3339(queue.created_at),
        paused_at=rfc3339(queue.paused_at),
        paused_by=queue.paused_by,
        paused_why=queue.paused_why,
        declared=declared_fields(Layers(declared=queue.declared)),
        apps=sorted(app for app, each in queue.declared.items() if each.declares),
        overrides={
            name: OverrideShape(value=each.value, by=each.by, why=each.why, at=rfc3339(each.at))
            for name, each in sorted(queue.overrides.items())
        },
        version=queue.version,
        problems=list(queue.problems),
    )


def task_shape(task: TaskEntry) -> TaskShape:
    return TaskShape(
        name=task.name,
        queue=task.queue,
        priority=task.priority,
        timeout_s=seconds_of(task.timeout),
        paused_at=rfc3339(task.paused_at),
        paused_by=task.paused_by,
        paused_why=task.paused_why,
    )


def schedule_shape(schedule: Schedule, now: Instant) -> ScheduleShape:
    timing = schedule.timing
    cron = timing if isinstance(timing, Cron) else None
    interval = timing if isinstance(timing, Every) else None
    bounded = cron or interval
    return ScheduleShape(
        name=schedule.name,
        task=schedule.job.task,
        queue=schedule.job.queue,
        kind="cron" if cron else "every" if interval else "startup",
        when=words_of(timing),
        cron=cron.fields if cron else None,
        tz=cron.tz if cron else None,
        every_s=interval.seconds if interval else None,
        jitter_s=bounded.jitter if bounded else 0.0,
        start_at=rfc3339(bounded.start if bounded else None),
        end_at=rfc3339(bounded.end if bounded else None),
        missed=schedule.missed,
        overlap=schedule.overlap,
        waiting=schedule.waiting,
        keep=schedule.keep,
        state=state_of(schedule, now),
        next_at=rfc3339(schedule.next_at),
        last_at=rfc3339(schedule.last_at),
        last_job=None if schedule.last_job is None else show_id(schedule.last_job),
        retired_at=rfc3339(schedule.retired_at),
        source=schedule.source,
        version=schedule.version,
    )


def member_shape(member: MemberRecord, *, controller: bool, catalogue: Iterable[str] = ()) -> MemberShape:
    info, detail = member.info, detail_of(member.info)
    heartbeat_at: Instant = member.heartbeat_at
    return MemberShape(
        id=show_id(info.id),
        name=info.name,
        health=member.health.value,
        host=info.host,
        pid=info.pid,
        version=info.version,
        roles=list(info.roles),
        controller=controller,
        queues=list(info.queues),
        tasks=None if info.tasks is None else sorted(name for name in catalogue if knows_task(info, name)),
        slots=info.slots,
        running=member.running,
        since=rfc3339(member.since),
        heartbeat_at=rfc3339(heartbeat_at),
        heartbeat_s=info.heartbeat / SECOND,
        lease_s=info.lease / SECOND,
        memory=detail.memory,
        processes=[msgspec.convert(one, ProcessShape, from_attributes=True) for one in detail.processes],
    )


def event_shape(event: Event | Gap) -> EventShape | GapShape:
    if isinstance(event, Gap):
        return GapShape(gap=event.why, missed=event.missed)
    return EventShape(
        job=event.job,
        state=event.state.value,
        queue=event.queue,
        task=event.task,
        at=rfc3339(event.instant),
        member=event.member,
        error=event.error,
    )


def scale_shape(demand: Demand) -> ScaleShape:
    return msgspec.convert(demand, ScaleShape, from_attributes=True)


def doctor_shape(engine: str, storage: Storage, warnings: list[StorageWarning]) -> DoctorShape:
    return DoctorShape(
        engine=engine,
        bytes=storage.bytes,
        parts=[msgspec.convert(part, PartShape, from_attributes=True) for part in storage.parts],
        holders=[
            HolderShape(
                kind=holder.kind.value,
                name=holder.name,
                age_s=seconds_of(holder.age),
                behind=holder.behind,
                bytes=holder.bytes,
                state=holder.state,
                application=holder.application,
                user=holder.user,
            )
            for holder in storage.holders
        ],
        warnings=[msgspec.convert(warning, WarningShape, from_attributes=True) for warning in warnings],
    )
