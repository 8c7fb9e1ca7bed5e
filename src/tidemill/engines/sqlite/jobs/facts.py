"""What operations need to know of a job before they move it."""

from collections.abc import Iterable
from typing import NamedTuple

from tidemill.engines.sqlite.jobs.step import Step, marks
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Fence
from tidemill.model.time import Instant


class Facts(NamedTuple):
    """A job without its payload. The fields are columns of `job_now`, in the order of selection."""

    pk: int
    id: JobId
    queue: int
    priority: int
    suspect: int
    lane: str
    seq: int
    state: int
    form: int
    task: str
    key: str | None
    attempts: int
    crashes: int
    lost_runs: int
    failures: int
    replay_token: bytes | None
    cancel_requested: int
    has_children: int
    waits_for: int
    parent_died: str | None
    due_at: Instant | None
    expires_at: Instant | None
    ended_at: Instant | None
    claimed_at: Instant | None
    started_at: Instant | None
    claimant: int | None
    claim_no: int | None
    member: str | None
    fence: Fence | None
    settled_fence: Fence | None
    unique_key: str | None
    unique_until: int | None


_COLUMNS = ", ".join(f"job_now.{name}" for name in Facts._fields)
_make = Facts._make

ORDERS = {
    "blocked": "blocked CROSS JOIN job_now ON job_now.pk = blocked.pk",
    "due": "due CROSS JOIN job_now ON job_now.pk = due.pk",
    "ready": "ready CROSS JOIN job_now "
    "ON job_now.pk BETWEEN ready.first - ready.ahead AND ready.last - ready.ahead",
    "run": "run CROSS JOIN job_now ON job_now.pk BETWEEN run.first AND run.last",
    "ended": "ended CROSS JOIN job_now ON job_now.pk BETWEEN ended.first AND ended.last",
    "dead": "dead CROSS JOIN job_now ON job_now.pk = dead.pk",
    "grave": "grave CROSS JOIN job_now ON job_now.pk = grave.pk",
    "expiring": "expiring CROSS JOIN job_now ON job_now.pk = expiring.pk",
}
"""The orders in which jobs stand, each with its jobs. CROSS: SQLite walks along the order."""


def by_ids(step: Step, ids: Iterable[JobId]) -> dict[JobId, Facts]:
    """The jobs that exist among these ids."""
    wanted = tuple(ids)
    rows = step.db.execute(f"SELECT {_COLUMNS} FROM job_now WHERE id IN ({marks(len(wanted))})", wanted)
    return {row[1]: _make(row) for row in rows}


def by_pk(step: Step, pk: int) -> Facts | None:
    """One job."""
    row = step.db.execute(f"SELECT {_COLUMNS} FROM job_now WHERE pk = ?", (pk,)).fetchone()
    return None if row is None else _make(row)


def along(step: Step, order: str, where: str, parameters: tuple[object, ...]) -> list[Facts]:
    """The jobs that stand in an order (`ORDERS`), under a condition on it."""
    text = f"SELECT {_COLUMNS} FROM {ORDERS[order]} WHERE {where}"
    return [_make(row) for row in step.db.execute(text, parameters)]


def running_under(step: Step, claimant: int, limit: int = -1) -> list[Facts]:
    """What a claimant holds, in the order of its fences."""
    return along(step, "run", "run.claimant = ? ORDER BY job_now.fence LIMIT ?", (claimant, limit))
