"""The edge of a call, the same on every engine: what is refused before anything is stored.

Stores differ in what they make of a value that is not what it should be: one refuses it, one keeps it, one
takes it for something else. So the rules stand here, and every method of every engine asks them first:

- what names a job, a member, a claimant or a wish to replay is 16 bytes;
- a count, a number or a fence is a whole number from 0 to below 2**53;
- a text has no zero character and no half of a surrogate pair.
"""

import re
from collections.abc import Sequence
from typing import get_args

from tidemill.engine.protocol import BATCH_LIMIT, UNKNOWN_LIMIT, WHY_LIMIT
from tidemill.model.errors import BadInput
from tidemill.model.ids import ID_SIZE, JobId, check_id
from tidemill.model.jobs.job import PAYLOAD_LIMIT, Edit, NewJob, check_edit, check_new_jobs
from tidemill.model.jobs.run import (
    Checkpoint,
    ClaimRequest,
    Completed,
    Entry,
    Failed,
    LogLine,
    LostRun,
    LostRunVerdict,
    Note,
    Progress,
    Release,
    ReleaseReason,
    Settlement,
    check_result,
)
from tidemill.model.jobs.unique import merge_unique
from tidemill.model.member import (
    MARK_SIZE,
    MISSED_HEARTBEATS,
    TASKS_LIMIT,
    ClaimantHeartbeat,
    MemberInfo,
)
from tidemill.model.names import check_queue, check_task
from tidemill.model.queues.lane import check_priority
from tidemill.model.schedules.schedule import Schedule, check_schedule
from tidemill.model.stats.batch import StatsBatch, check_rows
from tidemill.model.stats.sample import SAMPLES_LIMIT, QueueSample
from tidemill.model.time import LONGEST, MINUTE, Instant, Span, check_span
from tidemill.model.view import JobFilter, TaskEntry, check_filter, check_page

LOCK_NAME_LIMIT = 200
EXACT = 1 << 53
"""Whole numbers below it are exact in every store."""

_NOT_TEXT = re.compile(r"[\x00\ud800-\udfff]")


# Single values


def check_batch(size: int, limit: int = BATCH_LIMIT) -> None:
    """Refuse a call with more items than one step takes."""
    if type(size) is not int or not 0 <= size <= limit:
        raise BadInput(f"one call takes at most {limit:,} items, not {size!r}: split it")


def check_number(number: int, what: str) -> int:
    """The same whole number, or `BadInput`."""
    if type(number) is not int or not 0 <= number < EXACT:
        raise BadInput(f"{what} is a whole number from 0 to below 2**53, not {number!r}")
    return number


def check_text(text: str, what: str) -> str:
    """The same text, or `BadInput`."""
    if not isinstance(text, str) or _NOT_TEXT.search(text):
        raise BadInput(
            f"{what} is a text without zero characters and lone surrogates, not {ascii(text)[:80]}"
        )
    return text


def check_bytes(value: bytes, what: str) -> bytes:
    """The same bytes, or `BadInput`."""
    if not isinstance(value, bytes):
        raise BadInput(f"{what} is bytes, not {type(value).__name__}: encode it before")
    return value


def check_token(token: bytes, what: str) -> bytes:
    """The same 16 bytes, or `BadInput`."""
    if not isinstance(token, bytes) or len(token) != ID_SIZE:
        raise BadInput(f"{what} is 16 bytes, not {token!r}")
    return token


def check_member(member: bytes) -> bytes:
    """The same id of a member, or `BadInput`."""
    return check_token(member, "a member's id")


def check_claimant(claimant: bytes) -> bytes:
    """The same id of a claimant, or `BadInput`."""
    return check_token(claimant, "a claimant's id")


def check_replay_token(token: bytes) -> bytes:
    """The same token, or `BadInput`."""
    return check_token(token, "a replay's token, new for each wish to replay,")


# Jobs and runs


def check_replay(ids: Sequence[JobId], token: bytes, edit: Edit | None) -> list[JobId]:
    """The same ids; refuse a bad token, and other arguments for more than one job."""
    check_replay_token(token)
    if edit is not None:
        check_edit(edit)
        if len(ids) != 1:
            raise BadInput(f"other arguments belong to one job, not to {len(ids):,}")
    return check_ids(ids)


def check_ids(ids: Sequence[JobId]) -> list[JobId]:
    """The same ids, or `BadInput`."""
    check_batch(len(ids))
    return [check_id(job_id) for job_id in ids]


def check_why(ids: Sequence[JobId]) -> list[JobId]:
    """The same for `inspect.why`, which reads much of each."""
    check_batch(len(ids), WHY_LIMIT)
    return check_ids(ids)


def check_jobs(jobs: Sequence[NewJob]) -> None:
    """Refuse jobs that cannot be stored."""
    check_batch(len(jobs))
    check_new_jobs(jobs)


def check_transaction(jobs: Sequence[NewJob]) -> None:
    """Refuse jobs that cannot be stored in a transaction of the caller's."""
    check_jobs(jobs)
    for job in jobs:
        if job.after:
            raise BadInput("after= cannot be used with transaction=: enqueue the children separately")
        if job.unique is not None and job.unique.on_conflict == "replace":
            raise BadInput(
                'on_conflict="replace" and debounce= cannot be used with transaction=: the job that is there '
                "would be held for as long as the transaction is open"
            )


def check_claim(request: ClaimRequest) -> None:
    """Refuse a claim that no engine could understand."""
    check_member(request.member)
    check_claimant(request.claimant)
    if check_number(request.number, "a claim's number") < 1:
        raise BadInput(f"claims are numbered from 1, not {request.number}")
    if check_number(request.most, "a claim's bound") > BATCH_LIMIT:
        raise BadInput(f"a claim takes between 0 and {BATCH_LIMIT:,} jobs, not {request.most}")
    check_number(request.suspects, "a claim's bound of suspects")
    if request.ids is not None:
        check_ids(request.ids)
    check_batch(len(request.wants))
    for want in request.wants:
        check_queue(want.queue)
        if want.most is not None:
            check_number(want.most, "a claim's bound of a queue")
    if len({want.queue for want in request.wants}) != len(request.wants):
        raise BadInput("a claim names each queue once")
    if request.unknown:
        _check_unknown(request.unknown)


def _check_unknown(tasks: Sequence[str]) -> None:
    if len(tasks) > UNKNOWN_LIMIT:
        raise BadInput(f"a claim names at most {UNKNOWN_LIMIT} tasks as unknown, not {len(tasks):,}")
    for task in tasks:
        check_task(task)
    if len(set(tasks)) != len(tasks):
        raise BadInput("a claim names each unknown task once")


def _check_run(run: Settlement | Note | Release) -> None:
    """Refuse what does not say which run it is about."""
    check_id(run.id)
    check_number(run.fence, "a fence")


def check_settlements(settlements: Sequence[Settlement]) -> None:
    """Refuse outcomes that cannot be recorded."""
    check_batch(len(settlements))
    for settlement in settlements:
        outcome = settlement.outcome
        # The hot path: a plain completion costs 0.2 us here, and several times as much by the calls below.
        if type(outcome) is Completed and settlement.then is None:
            job_id, fence, ran, result = settlement.id, settlement.fence, settlement.ran, outcome.result
            if (
                type(job_id) is bytes
                and len(job_id) == ID_SIZE
                and type(fence) is int
                and 0 <= fence < EXACT
                and type(ran) is int
                and 0 <= ran <= LONGEST
                and (result is None or (type(result) is bytes and len(result) <= PAYLOAD_LIMIT))
            ):
                continue
        _check_settlement(settlement)


def _check_settlement(settlement: Settlement) -> None:
    _check_run(settlement)
    check_span(settlement.ran)
    outcome, then = settlement.outcome, settlement.then
    if isinstance(outcome, Completed):
        if outcome.result is not None:
            check_result(check_bytes(outcome.result, "a result"))
    elif isinstance(outcome, Failed) and outcome.retry_in is not None:
        check_span(outcome.retry_in)
    if then is not None:
        check_jobs(then.jobs)
        check_span(then.schedule_in)
        if then.schedule_version is not None:
            check_number(then.schedule_version, "a version")
        if then.schedule is not None:
            check_text(then.schedule, "a schedule's name")
        if any(job.after for job in then.jobs):
            raise BadInput("jobs that follow an outcome cannot wait for others (after=)")
        if any(job.unique is not None for job in then.jobs):
            raise BadInput("jobs that follow an outcome cannot have unique keys")


def check_notes(notes: Sequence[Note], *, most: int | None = BATCH_LIMIT) -> None:
    """Refuse notes that cannot be kept; `most` None: as many as there are."""
    if most is not None:
        check_batch(len(notes), most)
    for note in notes:
        _check_run(note)
        _check_entry(note.entry)


def _check_entry(entry: Entry) -> None:
    match entry:
        case Progress(value=value):
            check_bytes(value, "progress")
        case LogLine(number=number, level=level, message=message):
            check_number(number, "a log line's number")
            check_text(level, "a log line's level")
            if not isinstance(message, str):
                raise BadInput(f"a log line's message is a text, not {type(message).__name__}")
        case Checkpoint(name=name, value=value):
            check_text(name, "a checkpoint's name")
            check_bytes(value, "a checkpoint's value")


def check_releases(releases: Sequence[Release]) -> None:
    """Refuse releases that cannot be made."""
    check_batch(len(releases))
    for release in releases:
        _check_run(release)
        if release.delay is not None:
            check_span(release.delay)
        if release.reason is not None and release.reason not in get_args(ReleaseReason):
            known = ", ".join(f'"{reason}"' for reason in get_args(ReleaseReason))
            raise BadInput(f"the reason of a release is one of {known}, not {release.reason!r}")


def check_lost_runs(claimant: bytes, lost_runs: Sequence[LostRun]) -> None:
    """Refuse a retirement that cannot be recorded."""
    check_claimant(claimant)
    check_batch(len(lost_runs))
    for run in lost_runs:
        check_id(run.id)
        if type(run.fence) is not int:  # `heartbeats.plausible_lost_runs` deals with those out of bounds
            raise BadInput(f"a fence is a whole number, not {run.fence!r}")
        if run.verdict not in get_args(LostRunVerdict):
            raise BadInput(f'the verdict on a lost run is "suspect" or "crash", not {run.verdict!r}')
        if not isinstance(run.message, str):
            raise BadInput(f"the message of a lost run is a text, not {type(run.message).__name__}")


# The cluster


def check_heartbeat(
    info: MemberInfo, claimants: Sequence[ClaimantHeartbeat], statistics: StatsBatch | None
) -> None:
    """Refuse a heartbeat of a member that could not be known by it."""
    check_member(info.id)
    check_text(info.name, "a member's name")
    heartbeat, lease = check_number(info.heartbeat, "a heartbeat"), check_number(info.lease, "a lease")
    if heartbeat <= 0 or lease <= MISSED_HEARTBEATS * heartbeat:
        raise BadInput("a member has a lease that is longer than two heartbeats")
    if info.tasks is not None and (len(info.tasks) % MARK_SIZE or len(info.tasks) > MARK_SIZE * TASKS_LIMIT):
        raise BadInput(f"a member names at most {TASKS_LIMIT:,} tasks, by marks of {MARK_SIZE} bytes")
    check_batch(len(claimants))
    for each in claimants:
        check_claimant(each.claimant)
        # `heartbeats.plausible` deals with those that are out of bounds
        if any(type(number) is not int for number in (each.answered_through, *each.held)):
            raise BadInput("fences and numbers of claims are whole numbers")
    if statistics is not None:
        check_number(statistics.number, "the number of a batch of statistics")
        check_rows(statistics.rows)


def check_samples(minute: Instant, samples: Sequence[QueueSample]) -> None:
    """Refuse samples that cannot be kept."""
    if check_number(minute, "a minute") % MINUTE:
        raise BadInput(f"samples are of a whole minute, not of {minute}")
    check_batch(len(samples), SAMPLES_LIMIT)
    for sample in samples:
        check_queue(sample.queue)
        check_number(sample.stock, "a stock")
        for number in (sample.arrived, sample.oldest_ready):
            if number is not None:
                check_number(number, "what a sample says")


def check_entries(entries: Sequence[TaskEntry]) -> None:
    """Refuse tasks of which no job could be stored with the defaults that they name."""
    check_batch(len(entries))
    for entry in entries:
        check_task(entry.name)
        check_queue(entry.queue)
        check_priority(entry.priority)
        if entry.timeout is not None:
            check_span(entry.timeout)
        if entry.key is not None:
            check_text(entry.key, "the name of a parameter")
        if entry.unique is not None:
            merge_unique(entry.unique, None)
        if entry.on_dead is not None:
            check_task(entry.on_dead)


def check_pause(name: str, by: str, why: str = "", *, version: int | None = None) -> None:
    """Refuse what could not be found or noted about a queue or a schedule."""
    check_text(name, "a name")
    check_text(by, "by")
    check_text(why, "a reason")
    if version is not None:
        check_number(version, "a version")


def check_schedules(schedules: Sequence[Schedule], by: str) -> None:
    """Refuse schedules that cannot be stored."""
    check_batch(len(schedules))
    check_text(by, "by")
    for schedule in schedules:
        check_schedule(schedule)


def check_lock(name: str, ttl: Span) -> None:
    """Refuse a lease that cannot be held."""
    if not check_text(name, "a lock's name") or len(name) > LOCK_NAME_LIMIT:
        raise BadInput(f"a lock's name has 1 to {LOCK_NAME_LIMIT} characters")
    if check_span(ttl) <= 0:
        raise BadInput("a lock's ttl must be longer than 0 s")


def check_acquire(name: str, holder: str, ttl: Span) -> None:
    """The same for a holder that is to be known again."""
    check_lock(name, ttl)
    check_text(holder, "a lock's holder")


def check_watch(ids: Sequence[JobId], waiter: str, ttl: Span) -> list[JobId]:
    """The same ids, or `BadInput`."""
    check_text(waiter, "a waiter's name")
    check_span(ttl)
    return check_ids(ids)


def check_signal(topic: str, text: str) -> None:
    """Refuse a signal that could not be sent as it is."""
    check_text(topic, "a topic")
    check_text(text, "a signal's text")


# Reads


def check_listing(only: JobFilter, limit: int) -> None:
    """Refuse a filter by which nothing could be found, and a page that is too long."""
    check_filter(only)
    check_limit(limit)
    for moment in (only.since, only.until):
        if moment is not None:
            check_number(moment, "a moment in a filter")
    for part in (only.key, only.tag, only.text, only.member, only.schedule):
        if part is not None and not _is_text(part):
            raise BadInput(f"a filter is a text without lone surrogates, not {ascii(part)[:80]}")


def check_limit(limit: int) -> int:
    """The same length of a page, or `BadInput`."""
    return check_page(check_number(limit, "the length of a page"))


def _is_text(text: str) -> bool:
    """A zero character may be searched for: bodies have any."""
    return isinstance(text, str) and not _NOT_TEXT.search(text.replace("\0", ""))
