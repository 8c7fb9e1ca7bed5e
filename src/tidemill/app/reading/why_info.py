"""Why a job is not running, as people read it: moments as `datetime`s, ids as text."""

from dataclasses import dataclass
from datetime import datetime

from tidemill.model.ids import show_id
from tidemill.model.time import Instant, moment_of
from tidemill.model.why.reasons import Opens, Reason, ReasonKind


@dataclass(frozen=True, slots=True)
class HolderInfo:
    """A running job that holds a place behind a limit."""

    id: str
    member: str
    """The worker that runs it."""
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonInfo:
    """One reason. All moments are aware, in UTC. Fields that do not fit its kind are None or empty."""

    kind: ReasonKind
    """"not due", "parents", "expired", "paused", "gate full", "rate": it cannot start. "priority", "behind":
    others go first. "no worker", "unknown task": no worker takes it. "suspect", "released": for information,
    they hold nothing back. "ready": it can start now. "running", "stopping", "ended"."""
    sentence: str
    """The whole reason, for people."""
    since: datetime | None
    """Since when: of a pause, a run, an end."""
    until: datetime | None
    """When time alone ends it; None: time alone does not."""
    by: str
    """Who paused it; the worker that runs or ran it."""
    why: str
    """What was said with a pause; why a run was released; what a job died of."""
    count: int | None
    """Jobs before it, jobs that it waits for, or jobs that run behind a limit."""
    more: bool
    """It is more than `count`: counted no further."""
    gate: str
    """Which limit: "queue", "task shop.send" or "key acme"."""
    limit: int | None
    """How many may run; of a rate, how many may start in its window."""
    holders: tuple[HolderInfo, ...]
    """Up to ten of the running jobs that fill a limit, the longest running first."""
    opens: tuple[Opens, ...]
    """What to look at: queues, jobs, members and tasks, the most useful first."""


def reason_info(reason: Reason) -> ReasonInfo:
    """A reason in the form that people read."""
    return ReasonInfo(
        kind=reason.kind,
        sentence=reason.sentence,
        since=_moment(reason.since),
        until=_moment(reason.until),
        by=reason.by,
        why=reason.why,
        count=reason.count,
        more=reason.more,
        gate=reason.gate,
        limit=reason.limit,
        holders=tuple(
            HolderInfo(show_id(each.id), each.member, moment_of(each.since)) for each in reason.holders
        ),
        opens=reason.opens,
    )


def _moment(instant: Instant | None) -> datetime | None:
    return None if instant is None else moment_of(instant)
