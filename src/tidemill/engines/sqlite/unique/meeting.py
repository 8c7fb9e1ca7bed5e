"""A new job with a unique key: does it meet another job, and what becomes of that."""

from tidemill.engine.shared.uniques import not_unique
from tidemill.engines.sqlite.jobs import facts
from tidemill.engines.sqlite.jobs.facts import Facts
from tidemill.engines.sqlite.jobs.step import BLOCKED, READY, RUNNING, SCHEDULED, Step
from tidemill.engines.sqlite.order import lanes, positions
from tidemill.engines.sqlite.unique.keys import SQL
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import NewJob
from tidemill.model.jobs.unique import REPLACING_KEPT, UniqueKey, replaced_due


def meet(step: Step, job: NewJob, unique: UniqueKey) -> JobId | None:
    """The job that this call meets, replaced if it asks for that; None: the key is free. Its id is new."""
    row = step.db.execute(SQL.find_replaced, (job.id,)).fetchone()
    if row is not None:
        return bytes(row[0])
    found = _holder(step, job, unique)
    if found is None or found[0] == job.id:
        return None
    holder, met = found
    if unique.on_conflict == "refuse":
        raise not_unique(job.task, unique.key, holder)
    if unique.on_conflict == "replace" and met is not None and met.state < RUNNING:
        _replace(step, job, unique, met)
    return holder


def _holder(step: Step, job: NewJob, unique: UniqueKey) -> tuple[JobId, Facts | None] | None:
    replaces = unique.on_conflict == "replace"
    if unique.period is None:
        row = step.db.execute(SQL.find_holder, (job.task, unique.key)).fetchone()
        met = None if row is None else facts.by_pk(step, row[0])
        return None if met is None else (met.id, met)
    row = step.db.execute(SQL.find_period, (job.task, unique.key, step.now)).fetchone()
    if row is None:
        return None
    holder = bytes(row[0])
    return holder, facts.by_ids(step, (holder,)).get(holder) if replaces else None


def _replace(step: Step, job: NewJob, unique: UniqueKey, met: Facts) -> None:
    """The waiting job gets what the call says: payload, time, priority."""
    now, queue = step.now, step.catalogue.by_pk[met.queue]
    (created_at,) = step.db.execute(SQL.created_at, (met.pk,)).fetchone()
    due_at = replaced_due(unique, now + job.delay if job.at is None else job.at, created_at)
    later = due_at > now
    state = BLOCKED if met.state == BLOCKED else SCHEDULED if later else READY
    stays = state == met.state == READY and unique.latest is not None
    seq = met.seq if stays or state == BLOCKED else step.draw_seq(1)
    expires_at = None if job.expires is None else now + job.expires
    lane = lanes.lane_of(queue, job.priority, met.suspect, met.task, job.key)
    positions.leave(step, met)
    step.db.execute(
        SQL.replace,
        (
            job.body, job.codec, job.headers, job.key or "", job.priority, due_at if later else None,
            expires_at, met.pk,
        ),
    )  # fmt: skip
    ready_at = now if state == READY and not stays else None
    step.db.execute(SQL.place, (state, lane[3] if state == READY else met.lane, seq, ready_at, met.pk))
    new = met._replace(priority=job.priority, seq=seq, due_at=due_at, expires_at=expires_at)
    if state == READY:
        lanes.announce(step, (lane,))
        positions.put_ready(step, [(lane[:4], seq, met.pk)])
    elif state == SCHEDULED:
        positions.put_scheduled(step, new, due_at)
    else:
        step.db.execute(positions.SQL.add_blocked, (met.queue, met.pk))
    positions.put_expiring(step, new)
    if state != met.state:
        step.move(met.queue, met.state, state)
        step.moved(met.id, state, met.queue, met.task)
    step.signal_ready(met.queue)
    step.db.execute(SQL.remember_replacing, (job.id, met.pk))
    step.db.execute(SQL.forget_replacing, (met.pk, REPLACING_KEPT))
