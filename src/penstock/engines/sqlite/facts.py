"""What operations need to know of a job before they move it."""

from collections.abc import Iterable
from typing import NamedTuple

from penstock.engines.sqlite.step import Step, marks
from penstock.model.ids import JobId
from penstock.model.job import Fence
from penstock.model.time import Instant


class Facts(NamedTuple):
    """A job's row without its payload. The fields are the columns, in the order of selection."""

    pk: int
    id: JobId
    queue: int
    priority: int
    suspect: int
    seq: int
    state: int
    form: int
    task: str
    key: str
    attempts: int
    crashes: int
    losses: int
    failures: int
    replay_token: bytes | None
    cancel_asked: int
    gated: int
    has_children: int
    waits_for: int
    parent_died: str | None
    due_at: Instant | None
    claimed_at: Instant | None
    started_at: Instant | None
    claimant: int | None
    claim_no: int | None
    member: str | None
    fence: Fence | None
    settled_fence: Fence | None


SELECT = f"SELECT {', '.join(Facts._fields)} FROM job "
_make = Facts._make


def by_ids(step: Step, ids: Iterable[JobId]) -> dict[JobId, Facts]:
    """The jobs that exist among these ids."""
    wanted = tuple(ids)
    rows = step.db.execute(f"{SELECT} WHERE id IN ({marks(len(wanted))})", wanted)
    return {row[1]: _make(row) for row in rows}


def by_pk(step: Step, pk: int) -> Facts | None:
    """One job."""
    row = step.db.execute(f"{SELECT} WHERE pk = ?", (pk,)).fetchone()
    return None if row is None else _make(row)


def where(step: Step, condition: str, parameters: tuple[object, ...]) -> list[Facts]:
    """The jobs under a condition that begins with the column of an index."""
    return [_make(row) for row in step.db.execute(f"{SELECT} WHERE {condition}", parameters)]


def running_under(step: Step, claimant: int, limit: int = -1) -> list[Facts]:
    """What a claimant holds, in the order of its fences."""
    return where(step, "state = 3 AND claimant = ? ORDER BY fence LIMIT ?", (claimant, limit))
