"""Heartbeats in SQLite: renews a lease, and compares what a claimant says it holds with what is recorded."""

from collections.abc import Callable, Sequence

from tidemill.engine.shared.records import encode_member
from tidemill.engine.shared.statements import load_statements
from tidemill.engines.sqlite.cluster import stats
from tidemill.engines.sqlite.jobs import facts
from tidemill.engines.sqlite.jobs.facts import Facts
from tidemill.engines.sqlite.jobs.step import Step
from tidemill.model.jobs.job import Fence
from tidemill.model.member import (
    ClaimantHeartbeat,
    HeartbeatReply,
    MemberInfo,
    StopRequest,
    steady_after_heartbeat,
)
from tidemill.model.stats.batch import StatsBatch

SQL = load_statements("tidemill.engines.sqlite", "members")


def heartbeat(
    step: Step,
    info: MemberInfo,
    claimants: Sequence[ClaimantHeartbeat],
    statistics: StatsBatch | None,
    release: Callable[[Step, Facts], None],
) -> HeartbeatReply:
    """A member lives, and says what its children hold."""
    now = step.now
    row = step.db.execute(SQL.last_heartbeat, (info.id,)).fetchone()
    since, steady_since, last_batch = now, now, 0
    if row is not None:
        since, heartbeat_at, steady, last_batch = row
        steady_since = steady_after_heartbeat(info, heartbeat_at, steady, now)
    if statistics is not None and statistics.number > last_batch:
        last_batch = statistics.number
        stats.add(step, statistics.rows)
    record = (info.id, info.name, encode_member(info), since, now, steady_since, now + info.lease, last_batch)
    step.db.execute(SQL.heartbeat, record)
    number, options = step.db.execute(SQL.draw_heartbeat).fetchone()
    lost: list[Fence] = []
    for claimant in claimants:
        lost += _compare(step, claimant, release)
    stops = [StopRequest(*found) for found in step.db.execute(SQL.stop_requests, (info.id,))]
    return HeartbeatReply(
        number=number, now=now, new=row is None, lost=lost, stop_requests=stops, options=options
    )


def _compare(step: Step, sent: ClaimantHeartbeat, release: Callable[[Step, Facts], None]) -> list[Fence]:
    """Release what the engine thinks it holds and it does not; report the opposite."""
    row = step.db.execute(SQL.find_claimant, (sent.claimant,)).fetchone()
    if row is None:
        return list(sent.held)
    jobs = facts.running_under(step, row[0])
    held, running = set(sent.held), {job.fence for job in jobs}
    for job in jobs:
        if (job.claim_no or 0) <= sent.answered_through and job.fence not in held:
            release(step, job)
    return [fence for fence in sent.held if fence not in running]
