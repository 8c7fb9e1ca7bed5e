"""Recording outcomes, fenced."""

from collections.abc import Sequence

from tidemill.engine.protocol import PROMOTE_LIMIT
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.jobs import dependents, enqueue, facts, lost_runs, transitions
from tidemill.engines.sqlite.jobs.facts import Facts
from tidemill.engines.sqlite.jobs.step import CANCELLED, CODE, COMPLETED, RUNNING, SCHEDULED, Step
from tidemill.model.jobs.lifecycle import state_after_failure, state_after_release
from tidemill.model.jobs.run import (
    Answer,
    Completed,
    Crashed,
    Failed,
    Release,
    Settlement,
    Stopped,
    Then,
)

SQL = load_statements("tidemill.engines.sqlite", "settle")


def settle(step: Step, settlements: Sequence[Settlement]) -> list[Answer]:
    """Record each outcome whose run still holds its job."""
    jobs = facts.by_ids(step, {settlement.id: None for settlement in settlements})
    answers: list[Answer] = []
    settled: set[tuple[bytes, int]] = set()
    for settlement in settlements:
        job = jobs.get(settlement.id)
        run = settlement.id, settlement.fence
        answer = Answer.ALREADY if run in settled else judge(job, settlement.fence)
        answers.append(answer)
        if job is not None and answer is Answer.APPLIED:
            settled.add(run)
            _end(step, settlement, job)
    for settlement, answer in zip(settlements, answers, strict=True):
        if settlement.then is not None and answer is Answer.APPLIED:
            _follow(step, settlement.then)
    dependents.update_if_needed(step, PROMOTE_LIMIT)
    return answers


def judge(job: Facts | None, fence: int) -> Answer:
    """Whether a run may still speak for its job."""
    if job is None:
        return Answer.STALE
    if job.state == RUNNING and job.fence == fence:
        return Answer.APPLIED
    return Answer.ALREADY if job.settled_fence == fence else Answer.STALE


def _end(step: Step, settlement: Settlement, job: Facts) -> None:
    """End one attempt by its outcome."""
    started_at = job.started_at if job.started_at is not None else step.now - settlement.ran
    job = job._replace(started_at=started_at, settled_fence=job.fence)
    match settlement.outcome:
        case Completed(result=result):
            transitions.to_final(step, job, COMPLETED, result)
        case Failed() as outcome:
            step.db.execute(SQL.use_attempt, (job.pk,))
            _fail(step, job, outcome)
        case Crashed(message=message):
            lost_runs.crash(step, job, message)
        case Stopped():
            transitions.to_final(step, job, CANCELLED)


def _fail(step: Step, job: Facts, outcome: Failed) -> None:
    transitions.record_failure(step, job, outcome)
    step.count_failed(job.queue)
    retry = outcome.retry_in is not None
    state = CODE[state_after_failure(cancel_requested=bool(job.cancel_requested), retry=retry)]
    if state == SCHEDULED:
        transitions.to_scheduled(step, job, step.now + (outcome.retry_in or 0))
    else:
        transitions.to_final(step, job, state)


def _follow(step: Step, then: Then) -> None:
    created = enqueue.enqueue(step, then.jobs)
    if step.moves is not None:
        enqueue.name_new(step, then.jobs, created)
    if then.schedule is not None:
        version = then.schedule_version
        step.db.execute(SQL.set_schedule, (step.now + then.schedule_in, then.schedule, version, version))


def release(step: Step, releases: Sequence[Release]) -> list[Answer]:
    """Release jobs without using an attempt."""
    answers = []
    for item in releases:
        job = facts.by_ids(step, (item.id,)).get(item.id)
        answer = _judge_release(job, item.fence)
        answers.append(answer)
        if job is None or answer is not Answer.APPLIED:
            continue
        delayed = item.delay is not None
        state = CODE[state_after_release(cancel_requested=bool(job.cancel_requested), delayed=delayed)]
        if state == SCHEDULED:
            transitions.to_scheduled(step, job, step.now + (item.delay or 0), reason=item.reason)
        elif state >= COMPLETED:
            transitions.to_final(step, job, state)
        else:
            transitions.to_ready(step, job, keep_seq=True, reason=item.reason)
    return answers


def _judge_release(job: Facts | None, fence: int) -> Answer:
    if job is None or job.fence != fence or job.settled_fence == fence:
        return Answer.STALE
    return Answer.APPLIED if job.state == RUNNING else Answer.ALREADY
