"""Recording outcomes, fenced."""

from collections.abc import Sequence

from penstock.engine.protocol import BATCH_LIMIT, PROMOTE_LIMIT
from penstock.engine.statements import load_statements
from penstock.engines.sqlite import enqueue, facts, gates, moves, ripple
from penstock.engines.sqlite.facts import Facts
from penstock.engines.sqlite.step import CODE, COMPLETED, RUNNING, SCHEDULED, Step, check_batch
from penstock.model.job import Answer, Completed, Failed, Release, Settlement, Then, check_result
from penstock.model.lifecycle import state_after_failure, state_after_release

SQL = load_statements(__package__, "settle")


def check(settlements: Sequence[Settlement]) -> None:
    """Refuse before anything is recorded."""
    check_batch(len(settlements), BATCH_LIMIT)
    for settlement in settlements:
        if isinstance(settlement.outcome, Completed):
            check_result(settlement.outcome.result)
        if settlement.then is not None:
            enqueue.check(settlement.then.jobs)


def settle(step: Step, settlements: Sequence[Settlement]) -> list[Answer]:
    """Record each outcome whose run still holds its job."""
    jobs = facts.by_ids(step, {settlement.id: None for settlement in settlements})
    answers: list[Answer] = []
    completed: list[tuple[Settlement, Facts]] = []
    settled: set[tuple[bytes, int]] = set()
    for settlement in settlements:
        job = jobs.get(settlement.id)
        run = settlement.id, settlement.fence
        answer = Answer.ALREADY if run in settled else judge(job, settlement.fence)
        answers.append(answer)
        if job is None or answer is not Answer.APPLIED:
            continue
        settled.add(run)
        if isinstance(settlement.outcome, Completed):
            completed.append((settlement, job))
        else:
            _end(step, settlement, job)
    if completed:
        _complete(step, completed)
    for settlement, answer in zip(settlements, answers, strict=True):
        if settlement.then is not None and answer is Answer.APPLIED:
            _follow(step, settlement.then)
    ripple.tell_if_needed(step, PROMOTE_LIMIT)
    return answers


def judge(job: Facts | None, fence: int) -> Answer:
    """Whether a run may still speak for its job."""
    if job is None:
        return Answer.STALE
    if job.state == RUNNING and job.fence == fence:
        return Answer.APPLIED
    return Answer.ALREADY if job.settled_fence == fence else Answer.STALE


def _complete(step: Step, completed: list[tuple[Settlement, Facts]]) -> None:
    """The hot path: all completions of the batch in one go."""
    now, queues = step.now, step.catalogue.by_pk
    updates: list[tuple[object, ...]] = []
    counts: dict[int, int] = {}
    freed: set[tuple[int, str, str | None]] = set()
    endings: list[Facts] = []
    for settlement, job in completed:
        options = queues[job.queue].options
        outcome = settlement.outcome
        assert isinstance(outcome, Completed)
        started_at = job.started_at if job.started_at is not None else now - settlement.ran
        if options.keep_body:
            updates.append((started_at, now, outcome.result, job.pk))
        else:
            step.db.execute(SQL.complete_small, (started_at, now, job.pk))
        counts[job.queue] = counts.get(job.queue, 0) + 1
        if job.gated:
            freed.add((job.queue, job.task, job.key))
        endings.append(job)
    step.db.executemany(SQL.complete, updates)
    for queue, count in counts.items():
        step.move(queue, RUNNING, COMPLETED, count)
    gates.reopen(step, freed)
    for job in endings:
        moves.after_end(step, job, COMPLETED)


def _end(step: Step, settlement: Settlement, job: Facts) -> None:
    """An attempt that failed, or stopped because it was asked to."""
    started_at = job.started_at if job.started_at is not None else step.now - settlement.ran
    outcome = settlement.outcome
    failed = isinstance(outcome, Failed)
    step.db.execute(SQL.end_attempt, (failed, started_at, job.pk))
    job = job._replace(started_at=started_at)
    if not isinstance(outcome, Failed):
        moves.to_final(step, job, CODE[state_after_failure(cancel_asked=True, retry=False)])
        return
    moves.record_failure(step, job, outcome)
    step.count_failed(job.queue)
    retry = outcome.retry_in is not None
    state = CODE[state_after_failure(cancel_asked=bool(job.cancel_asked), retry=retry)]
    if state == SCHEDULED:
        moves.to_scheduled(step, job, step.now + (outcome.retry_in or 0))
    else:
        moves.to_final(step, job, state)


def _follow(step: Step, then: Then) -> None:
    enqueue.enqueue(step, then.jobs)
    if then.schedule is not None:
        step.db.execute(SQL.set_schedule, (step.now + then.schedule_in, then.schedule))


def release(step: Step, releases: Sequence[Release]) -> list[Answer]:
    """Give jobs back without using an attempt."""
    check_batch(len(releases), BATCH_LIMIT)
    answers = []
    for item in releases:
        job = facts.by_ids(step, (item.id,)).get(item.id)
        answer = _judge_release(job, item.fence)
        answers.append(answer)
        if job is None or answer is not Answer.APPLIED:
            continue
        delayed = item.delay is not None
        state = CODE[state_after_release(cancel_asked=bool(job.cancel_asked), delayed=delayed)]
        if state == SCHEDULED:
            moves.to_scheduled(step, job, step.now + (item.delay or 0))
        elif state >= COMPLETED:
            moves.to_final(step, job, state)
        else:
            moves.to_ready(step, job, keep_seq=True)
    return answers


def _judge_release(job: Facts | None, fence: int) -> Answer:
    if job is None or job.fence != fence or job.settled_fence == fence:
        return Answer.STALE
    return Answer.APPLIED if job.state == RUNNING else Answer.ALREADY
