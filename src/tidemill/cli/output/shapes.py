"""The JSON that `--json` prints. Names and types here are a promise: fields may be added, none taken away.

Times are RFC 3339 in UTC, lengths of time are seconds in fields that end in `_s`, ids are dashed UUIDs. The
descriptions are what docs/cli.md shows.
"""

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

Time = str | None
Seconds = float | None


class Payload(msgspec.Struct, frozen=True):
    """A job's arguments."""

    args: Annotated[list[Any], Meta(description="positional arguments")]
    kwargs: Annotated[dict[str, Any], Meta(description="keyword arguments")]


class FailureShape(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt that did not complete."""

    kind: Annotated[str, Meta(description="error, timeout, crash, lost, expired, parent or payload")]
    error: Annotated[str, Meta(description="the exception's qualified class name")]
    message: Annotated[str, Meta(description="its text")]
    traceback: Annotated[str, Meta(description="its traceback")]
    fingerprint: Annotated[str, Meta(description="equal for failures that are alike")]
    attempt: Annotated[int, Meta(description="which attempt it was")]
    number: Annotated[int, Meta(description="1 for the job's first failure, counted on over replays")]
    worker: Annotated[str, Meta(description="the member that ran it")]
    claimed_at: Annotated[Time, Meta(description="when it was taken")]
    started_at: Annotated[Time, Meta(description="when it began to run")]
    ended_at: Annotated[Time, Meta(description="when it failed")]
    retry_in_s: Annotated[Seconds, Meta(description="the wait chosen before the next attempt; null: none")]


class HolderJobShape(msgspec.Struct, frozen=True):
    """A running job that holds a place behind a limit."""

    id: Annotated[str, Meta(description="the job")]
    worker: Annotated[str, Meta(description="the member that runs it")]
    since: Annotated[Time, Meta(description="when it was taken")]


class OpensShape(msgspec.Struct, frozen=True):
    """Something to look at."""

    what: Annotated[str, Meta(description="queue, job, member or task")]
    name: Annotated[str, Meta(description="its name, or the id of a job")]


class ReasonShape(msgspec.Struct, frozen=True, kw_only=True):
    """A reason why a job is where it is. What does not fit its kind is null or empty."""

    kind: Annotated[
        str,
        Meta(
            description="not due, parents, expired, paused, gate full, rate, priority, behind, no worker, "
            "unknown task, suspect, released, ready, running, stopping or ended"
        ),
    ]
    sentence: Annotated[str, Meta(description="the whole reason, for people")]
    since: Annotated[Time, Meta(description="of a pause, a run, an end")]
    until: Annotated[Time, Meta(description="when time alone ends it; null: time alone does not")]
    by: Annotated[str, Meta(description="who paused it; the worker that runs or ran it")]
    why: Annotated[str, Meta(description="said with a pause; why a run was released; what a job died of")]
    count: Annotated[
        int | None, Meta(description="jobs before it, that it waits for, or that run behind a limit")
    ]
    more: Annotated[bool, Meta(description="it is more than `count`: counted no further")]
    gate: Annotated[str, Meta(description="which limit: queue, task NAME or key NAME")]
    limit: Annotated[int | None, Meta(description="how many may run, or start in a rate's window")]
    holders: Annotated[
        list[HolderJobShape], Meta(description="up to 10 jobs that fill a limit, the longest running first")
    ]
    opens: Annotated[list[OpensShape], Meta(description="what to look at, the most useful first")]


class WhyShape(msgspec.Struct, frozen=True):
    """Why a job is where it is."""

    id: Annotated[str, Meta(description="the job")]
    state: Annotated[str, Meta(description="its state at that moment")]
    reasons: Annotated[list[ReasonShape], Meta(description="at least one; what holds it back comes first")]


class JobShape(msgspec.Struct, frozen=True, kw_only=True):
    """A job. Those of a list have no payload, result and failures; `show` has everything."""

    id: Annotated[str, Meta(description="its id")]
    task: Annotated[str, Meta(description="the name of its task")]
    queue: Annotated[str, Meta(description="its queue")]
    priority: Annotated[int, Meta(description="0 (first) to 10")]
    state: Annotated[
        str, Meta(description="blocked, scheduled, ready, running, completed, dead or cancelled")
    ]
    key: Annotated[str | None, Meta(description="its key")]
    attempts: Annotated[int, Meta(description="attempts begun: 1 while the first runs")]
    max_attempts: Annotated[int, Meta(description="the most attempts")]
    crashes: Annotated[int, Meta(description="proven crashes of its worker process")]
    losses: Annotated[int, Meta(description="how often its whole member vanished with it")]
    snoozes: Annotated[int, Meta(description="how often its code has raised Snooze")]
    suspect: Annotated[bool, Meta(description="runs in a process of its own: it may have crashed one")]
    cancel_asked: Annotated[bool, Meta(description="it was asked to stop")]
    replays: Annotated[int, Meta(description="how often it was replayed")]
    created_at: Annotated[Time, Meta(description="when it was enqueued")]
    due_at: Annotated[Time, Meta(description="when it becomes ready, if it waits for that")]
    ready_at: Annotated[Time, Meta(description="when it last became ready")]
    claimed_at: Annotated[Time, Meta(description="when a worker last took it")]
    started_at: Annotated[Time, Meta(description="when it last began to run")]
    ended_at: Annotated[Time, Meta(description="when it came into its final state")]
    expires_at: Annotated[Time, Meta(description="when it is dead if it has not started")]
    timeout_s: Annotated[Seconds, Meta(description="how long an attempt may run, if the job itself says so")]
    worker: Annotated[str | None, Meta(description="the member that runs or last ran it")]
    waits_for: Annotated[int, Meta(description="other jobs that it still waits for")]
    on_dead: Annotated[str | None, Meta(description="the task that handles its final failure")]
    schedule: Annotated[str | None, Meta(description="the schedule that made it")]
    unique: Annotated[str | None, Meta(description="its unique key")]
    reason: Annotated[
        str | None,
        Meta(
            description="why a worker released it or passed it over: unknown task, no process runner, drain, "
            "snooze"
        ),
    ]
    progress: Annotated[Any, Meta(description="what it last reported")]
    failure_count: Annotated[int, Meta(description="failures of any kind, over replays too")]
    error: Annotated[FailureShape | None, Meta(description="the last failure")]
    group: Annotated[str | None, Meta(description="its dead-letter group, if it is dead")]
    headers: Annotated[
        dict[str, Any] | UnsetType | None, Meta(description="tags, trace context, origin (`show`)")
    ] = UNSET
    payload: Annotated[
        Payload | UnsetType | None, Meta(description="its arguments; null: dropped or not readable (`show`)")
    ] = UNSET
    result: Annotated[Any, Meta(description="what the function returned (`show`)")] = UNSET
    failures: Annotated[
        list[FailureShape] | UnsetType, Meta(description="the first 5 and the last 20 (`show`)")
    ] = UNSET
    why: Annotated[
        list[ReasonShape] | UnsetType, Meta(description="why it is where it is, as in `jobs why` (`show`)")
    ] = UNSET


class DeadGroupShape(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of one queue that failed alike."""

    group: Annotated[str, Meta(description="its name, for `--group`: task and fingerprint")]
    queue: Annotated[str, Meta(description="the queue of these jobs")]
    task: Annotated[str, Meta(description="the name of their task")]
    count: Annotated[int, Meta(description="how many are kept")]
    first_at: Annotated[Time, Meta(description="when the oldest of them died")]
    last_at: Annotated[Time, Meta(description="and the newest")]
    sample: Annotated[str, Meta(description="the newest; below, what it died of")]
    kind: Annotated[str, Meta(description="error, timeout, crash, lost, expired or payload")]
    error: Annotated[str, Meta(description="the exception's qualified class name")]
    message: Annotated[str, Meta(description="its text")]
    pattern: Annotated[str, Meta(description="its text without what differs from job to job")]
    age_s: Annotated[float, Meta(description="how old the count is")]


class AnswerShape(msgspec.Struct, frozen=True):
    """What became of one job that was named by its id."""

    id: Annotated[str, Meta(description="the job")]
    answer: Annotated[
        str,
        Meta(
            description="replayed, ready, cancelled, asked, dropped, finished, live, blocked, running, "
            "no body or unknown"
        ),
    ]


class BulkShape(msgspec.Struct, frozen=True):
    """What became of the jobs that a filter matched."""

    matched: Annotated[int, Meta(description="jobs that the filter found")]
    answers: Annotated[dict[str, int], Meta(description="how many of them got each answer")]


class EnqueuedShape(msgspec.Struct, frozen=True):
    """A job that was enqueued."""

    id: Annotated[str, Meta(description="its id")]
    task: Annotated[str, Meta(description="the name of its task")]
    created: Annotated[
        bool, Meta(description="false: the job was there already, by its id or by its unique key")
    ]
    result: Annotated[Any, Meta(description="what the function returned (with --wait)")] = UNSET


class FinishedShape(msgspec.Struct, frozen=True):
    """What ended in the window."""

    completed: int
    failed: Annotated[int, Meta(description="failed attempts, retried or not")]
    died: Annotated[int, Meta(description="became dead letters, kept or not")]
    cancelled: int


class TimesShape(msgspec.Struct, frozen=True):
    """Waiting or run times in the window. A percentile is at most 22.5% off, between 1 ms and 10 hours."""

    count: Annotated[int, Meta(description="how many there are")]
    p50_s: Annotated[Seconds, Meta(description="half of them were no longer")]
    p90_s: Seconds
    p95_s: Seconds
    p99_s: Seconds


class StatsShape(msgspec.Struct, frozen=True, kw_only=True):
    """One queue now, and what ended there in the window."""

    queue: str
    ready: int
    scheduled: int
    running: int
    blocked: int
    completed: Annotated[int, Meta(description="kept now, as are the next two")]
    dead: int
    cancelled: int
    window_s: Annotated[float, Meta(description="the window's length")]
    window: Annotated[FinishedShape, Meta(description="what ended in it, not falsified by retention")]
    age_s: Annotated[float, Meta(description="how old the counts are")]
    oldest_ready_s: Annotated[Seconds, Meta(description="how long the oldest ready job waits now")]
    oldest_in_window_s: Annotated[
        Seconds, Meta(description="the longest that one had waited, sampled once a minute")
    ]
    arrived: Annotated[
        int | None, Meta(description="jobs that came in the window, in the minutes that were sampled")
    ]
    wait: Annotated[TimesShape, Meta(description="how long jobs that were taken had been ready")]
    run: Annotated[TimesShape, Meta(description="how long runs that ended took")]


class OverrideShape(msgspec.Struct, frozen=True, kw_only=True):
    """One option of a queue that an operator has set."""

    value: Any
    by: str
    why: str
    at: Time


class QueueShape(msgspec.Struct, frozen=True, kw_only=True):
    """One queue as it is configured."""

    name: str
    options: Annotated[
        dict[str, Any],
        Meta(description="the options that differ from the defaults, as `Tidemill.queue` takes them"),
    ]
    created_at: Time
    paused_at: Annotated[Time, Meta(description="null: not paused")]
    paused_by: str
    paused_why: str
    declared: Annotated[dict[str, Any], Meta(description="what the code of all apps declares")]
    apps: Annotated[list[str], Meta(description="the apps whose code declares it")]
    overrides: Annotated[
        dict[str, OverrideShape], Meta(description="what operators have set over that, by option")
    ]
    version: Annotated[int, Meta(description="grows with every change of what is declared or set")]
    problems: Annotated[list[str], Meta(description="what had to be left out of the options")]


class TaskShape(msgspec.Struct, frozen=True, kw_only=True):
    """One task as workers have published it."""

    name: str
    queue: Annotated[str, Meta(description="where its jobs go unless the call says otherwise")]
    priority: int
    timeout_s: Annotated[float | None, Meta(description="null: as its queue or app says")]
    paused_at: Annotated[Time, Meta(description="null: not paused")]
    paused_by: str
    paused_why: str


class ScheduleShape(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule."""

    name: str
    task: Annotated[str, Meta(description="the name of its task")]
    queue: Annotated[str, Meta(description="where its jobs go")]
    kind: Annotated[str, Meta(description="cron, every or startup")]
    when: Annotated[str, Meta(description="in words")]
    cron: Annotated[str | None, Meta(description="the fields of a cron")]
    tz: Annotated[str | None, Meta(description="and its time zone")]
    every_s: Annotated[Seconds, Meta(description="the interval, from the end of a run")]
    jitter_s: Annotated[float, Meta(description="each job starts up to this much later")]
    start_at: Annotated[Time, Meta(description="not before")]
    end_at: Annotated[Time, Meta(description="not after")]
    missed: Annotated[str, Meta(description="skip, once or all")]
    overlap: Annotated[str, Meta(description="skip, queue or allow")]
    waiting: Annotated[int, Meta(description="with queue, the most jobs that wait in line")]
    keep: Annotated[
        int | None,
        Meta(description="of how many ticks before the last the jobs stay; null: as the queue says"),
    ]
    state: Annotated[
        str, Meta(description="active, running (an interval whose run has not ended), paused, retired, ended")
    ]
    next_at: Annotated[Time, Meta(description="the next tick")]
    last_at: Annotated[Time, Meta(description="the last tick for which a job was made")]
    last_job: Annotated[str | None, Meta(description="that job")]
    retired_at: Annotated[Time, Meta(description="since when its app's code does not declare it any more")]
    source: Annotated[str, Meta(description="the app whose code declares it; empty: made at run time")]
    version: Annotated[int, Meta(description="grows when it changes")]


class ScheduledShape(msgspec.Struct, frozen=True):
    """A run of a schedule that was asked for."""

    name: Annotated[str, Meta(description="the schedule")]
    job: Annotated[str, Meta(description="the job that was made")]


class RunShape(msgspec.Struct, frozen=True, kw_only=True):
    """A job that a process has."""

    id: str
    for_s: Annotated[
        Seconds,
        Meta(description="how long it runs; null: it waits, runs in a process of its own, or has just ended"),
    ]


class ProcessShape(msgspec.Struct, frozen=True, kw_only=True):
    """A process of a member."""

    pid: int
    memory: Annotated[int | None, Meta(description="resident bytes; null: not known")]
    held: Annotated[int, Meta(description="jobs it has: running, waiting, or ended and not yet settled")]
    started: Annotated[int, Meta(description="jobs that run")]
    loop_silent_s: Annotated[float, Meta(description="how long its loop owes an answer; long: blocked")]
    runs: Annotated[list[RunShape], Meta(description="up to 10 of them, the longest running first")]


class MemberShape(msgspec.Struct, frozen=True, kw_only=True):
    """One member."""

    id: Annotated[str, Meta(description="its id, new for every start")]
    name: Annotated[str, Meta(description="host:pid")]
    health: Annotated[str, Meta(description="healthy, late or gone")]
    host: str
    pid: int
    version: str
    roles: Annotated[list[str], Meta(description="worker: runs jobs; controller: stands for controller")]
    controller: Annotated[bool, Meta(description="it is the controller now")]
    queues: list[str]
    tasks: Annotated[
        list[str] | None,
        Meta(description="the tasks that its code has, of those in the catalogue; null: not known"),
    ]
    slots: int
    running: Annotated[int, Meta(description="jobs it has now")]
    since: Time
    heartbeat_at: Annotated[Time, Meta(description="its last heartbeat")]
    heartbeat_s: Annotated[float, Meta(description="seconds between two heartbeats")]
    lease_s: Annotated[float, Meta(description="how long it may be silent")]
    memory: Annotated[
        int | None,
        Meta(description="resident bytes of the process that sends the heartbeats; null: not known"),
    ]
    processes: Annotated[list[ProcessShape], Meta(description="those that run its jobs")]


class PartShape(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the state: a table, a file."""

    name: str
    bytes: Annotated[int, Meta(description="all of it, indexes included")]
    rows: Annotated[int | None, Meta(description="about how many; null: not known")]
    dead: Annotated[
        int | None, Meta(description="about how many are deleted or replaced and not yet removed")
    ]
    free: Annotated[int | None, Meta(description="bytes that will be used again before it grows")]


class HolderShape(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who keeps the store from clearing away what is no longer needed."""

    kind: Annotated[str, Meta(description="transaction, prepared, slot or reader")]
    name: Annotated[str, Meta(description="a session's process id, a prepared transaction's id, a slot")]
    age_s: Annotated[Seconds, Meta(description="null: not to be seen")]
    behind: Annotated[int | None, Meta(description="how many transactions have begun since")]
    bytes: Annotated[int | None, Meta(description="what it keeps from being used again; null: not known")]
    state: str
    application: str
    user: str


class WarningShape(msgspec.Struct, frozen=True, kw_only=True):
    """Something that an operator should do."""

    kind: Annotated[str, Meta(description="held, dead, free, off or controller")]
    subject: Annotated[str, Meta(description="whom it is about")]
    text: Annotated[str, Meta(description="what is wrong, and what to do")]


class EventShape(msgspec.Struct, frozen=True, kw_only=True):
    """A job came into a state."""

    job: Annotated[str, Meta(description="the job's id")]
    state: Annotated[str, Meta(description="the state that it came into")]
    queue: Annotated[str, Meta(description="its queue")]
    task: Annotated[str, Meta(description="the name of its task")]
    at: Annotated[Time, Meta(description="when, by the engine's clock")]
    member: Annotated[str, Meta(description="running: who runs it; else empty")]
    error: Annotated[str, Meta(description="dead or tried again: why, in one line; else empty")]


class GapShape(msgspec.Struct, frozen=True, kw_only=True):
    """Here events are missing."""

    gap: Annotated[str, Meta(description="why: lost (on the way), slow (this reader), unheard (outage)")]
    missed: Annotated[int | None, Meta(description="how many; null: not known")]


class DoctorShape(msgspec.Struct, frozen=True, kw_only=True):
    """What the doctor found."""

    engine: Annotated[str, Meta(description="the URL, without a password")]
    bytes: Annotated[int, Meta(description="what the state takes")]
    parts: Annotated[list[PartShape], Meta(description="largest first")]
    holders: Annotated[list[HolderShape], Meta(description="whoever holds most back first")]
    warnings: Annotated[list[WarningShape], Meta(description="empty: all is well")]


class QueueScaleShape(msgspec.Struct, frozen=True, kw_only=True):
    """What one queue wants."""

    queue: str
    workers: Annotated[int, Meta(description="how many workers it wants; 0: it has no work")]
    slots: Annotated[int, Meta(description="how many slots it wants")]
    ready: Annotated[int, Meta(description="jobs that wait")]
    startable: Annotated[int, Meta(description="those of them that a free slot would start")]
    running: int
    paused: bool
    live_workers: Annotated[int, Meta(description="workers that take from it now")]
    live_slots: Annotated[int, Meta(description="their slots")]


class ScaleShape(msgspec.Struct, frozen=True, kw_only=True):
    """How many workers are wanted."""

    workers: Annotated[int, Meta(description="the number for a scaler")]
    slots: Annotated[int, Meta(description="how many slots are wanted")]
    slots_per_worker: Annotated[int, Meta(description="with which it was counted")]
    live_workers: Annotated[int, Meta(description="workers that are there now")]
    queues: Annotated[list[QueueScaleShape], Meta(description="each queue; with QUEUE that one")]


class SettingShape(msgspec.Struct, frozen=True):
    """One setting."""

    name: str
    value: Annotated[str, Meta(description="as it would be written; secrets are hidden")]
    source: Annotated[str, Meta(description="where the value came from")]
