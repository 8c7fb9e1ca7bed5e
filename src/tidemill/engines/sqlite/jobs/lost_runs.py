"""Lost runs: a worker process died, a member vanished or left, or the answer to a claim did not arrive."""

from collections.abc import Sequence

from tidemill.engine.protocol import Reclaimed
from tidemill.engine.shared.codes import PROCESS_DIED
from tidemill.engine.shared.records import decode_member
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.jobs import facts, transitions
from tidemill.engines.sqlite.jobs.facts import Facts
from tidemill.engines.sqlite.jobs.step import CANCELLED, CODE, READY, Step
from tidemill.model.jobs.crash import AfterLostRun, after_claimant_lost, after_member_lost
from tidemill.model.jobs.job import Failure, FailureKind
from tidemill.model.jobs.run import LostRun, LostRunVerdict
from tidemill.model.member import may_sweep

SQL = load_statements("tidemill.engines.sqlite", "lost_runs")


def retire(step: Step, claimant: bytes, lost_runs: Sequence[LostRun]) -> int:
    """A worker process is dead: release its jobs, and refuse its claims from now on."""
    row = step.db.execute(SQL.find_claimant, (claimant,)).fetchone()
    if row is None:
        step.db.execute(SQL.remember_retired, (claimant, step.now))
        return 0
    (pk,) = row
    step.db.execute(SQL.retire, (step.now, pk))
    verdicts = {(lost.id, lost.fence): lost for lost in lost_runs}
    jobs = facts.running_under(step, pk)
    for job in jobs:
        lost = verdicts.get((job.id, job.fence or 0))
        if lost is None:
            release(step, job)
        else:
            _blame(step, job, lost.verdict, lost.message)
    return len(jobs)


def crash(step: Step, job: Facts, message: str) -> None:
    """A run took the process with it in which it was alone."""
    _blame(step, job, "crash", message)


def _blame(step: Step, job: Facts, verdict: LostRunVerdict, message: str) -> None:
    after = after_claimant_lost(
        verdict,
        suspect=bool(job.suspect),
        lost_runs=job.lost_runs,
        crashes=job.crashes,
        cancel_requested=bool(job.cancel_requested),
    )
    _record(step, job, "crash" if verdict == "crash" else "lost", message or PROCESS_DIED)
    _release_lost(step, job, after)


def reclaim(step: Step, sweeper: bytes, limit: int) -> Reclaimed:
    """Release what members that are gone still hold."""
    row = step.db.execute(SQL.sweeper, (sweeper,)).fetchone()
    if row is None or not may_sweep(decode_member(row[0]), row[1], row[2], step.now):
        return Reclaimed(entitled=False)
    reclaimed = Reclaimed(entitled=True, gone=[])
    for member, name in step.db.execute(SQL.gone, (step.now,)).fetchall():
        for (claimant,) in step.db.execute(SQL.claimants_of, (member,)).fetchall():
            jobs = facts.running_under(step, claimant, limit - reclaimed.jobs)
            for job in jobs:
                _lose(step, job)
            reclaimed.jobs += len(jobs)
        if reclaimed.jobs >= limit:
            break
        _forget(step, member)
        reclaimed.gone.append(name)
    return reclaimed


def leave(step: Step, member: bytes) -> int:
    """A member signs off: release what it still holds, and count nothing as lost."""
    released = 0
    for (claimant,) in step.db.execute(SQL.claimants_of, (member,)).fetchall():
        for job in facts.running_under(step, claimant):
            release(step, job)
            released += 1
    _forget(step, member)
    return released


def release(step: Step, job: Facts) -> None:
    """Release a job whose holder cannot do so. The job keeps its position in the lane."""
    if job.cancel_requested:
        transitions.to_final(step, job, CANCELLED)
    else:
        transitions.to_ready(step, job, keep_seq=True)


def _lose(step: Step, job: Facts) -> None:
    after = after_member_lost(
        suspect=bool(job.suspect),
        started=job.started_at is not None,
        lost_runs=job.lost_runs,
        crashes=job.crashes,
        cancel_requested=bool(job.cancel_requested),
    )
    crashed = after.crashes > job.crashes
    _record(step, job, "crash" if crashed else "lost", "its member vanished")
    _release_lost(step, job, after)


def _release_lost(step: Step, job: Facts, after: AfterLostRun) -> None:
    step.db.execute(SQL.count_crash, (after.suspect, after.crashes, job.pk))
    step.db.execute(SQL.count_lost_run, (job.pk, after.lost_runs))
    state = CODE[after.state]
    if state == READY:
        transitions.to_ready(step, job._replace(suspect=int(after.suspect)), keep_seq=True)
    else:
        transitions.to_final(step, job, state)


def _record(step: Step, job: Facts, kind: FailureKind, message: str) -> None:
    transitions.append_failure(step, job, Failure(kind=kind, message=message), attempt=job.attempts + 1)


def _forget(step: Step, member: bytes) -> None:
    step.db.execute(SQL.retire_all, (step.now, member))
    step.db.execute(SQL.forget_member, (member,))
