"""The `inspect` facet: everything that only reads jobs."""

from collections.abc import Sequence
from typing import Protocol

from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobRecord
from tidemill.model.jobs.run import (
    Checkpoint,
    StoredLine,
)
from tidemill.model.stats.series import StatsBy, StatsSeries
from tidemill.model.storage import Storage
from tidemill.model.time import Instant, Span
from tidemill.model.view import (
    WINDOW,
    AuditEntry,
    GroupPage,
    JobFilter,
    Page,
    QueueCounts,
    SeriesPoint,
)
from tidemill.model.why.facts import WhyFacts


class InspectFacet(Protocol):
    """For API, CLI and UI. Reads never hold up writers; what they see is one moment."""

    async def get(self, ids: Sequence[JobId], *, now: Instant | None = None) -> "list[JobRecord | None]":
        """Full records with kept failures, oldest first. Unknown ids and tombstones: None."""
        ...

    async def why(self, ids: Sequence[JobId], *, now: Instant | None = None) -> "list[WhyFacts | None]":
        """What decides whether these jobs run, all read at one moment: `model.why.facts` says what each fact
        is, and `model.why.reasons` makes reasons of them. Unknown ids and tombstones: None.

        The facts are those that a claim looks at. A claim at this moment that names one of these jobs by its
        id (and has room for a suspect) takes it exactly if the reasons have none of `STOPS`. Nothing is
        changed: a job that is due and not promoted yet, and one that has expired and is not dead yet, are
        shown as they are. Where the lanes of a queue are just being recut (its options have changed), `ahead`
        counts in the lane where the job stands now.

        Bounded: at most `WHY_LIMIT` ids. For each, no more than `AHEAD_COUNTED` + 1 jobs are counted,
        `HOLDERS_SHOWN` holders answered for each gate, and `PARENTS_READ` parents read. All members are read
        once. The cost does not grow with the number of stored jobs."""
        ...

    async def counts(self, *, window: Span = WINDOW, now: Instant | None = None) -> "list[QueueCounts]":
        """Every queue, by name, empty ones too. Live counts are at most 1 s old below 100,000 in a
        state; `age` says how old. `window` is cut (down) to whole minutes, at least one; the last of them is
        the current one."""
        ...

    async def series(
        self, *, since: Instant, until: Instant, step: Span, queue: str | None = None
    ) -> "list[SeriesPoint]":
        """What ended per step of whole minutes, zeros included, from `since` (rounded down to the
        step) until `until` (exclusive); of one queue or of all."""
        ...

    async def stats(
        self,
        *,
        since: Instant,
        until: Instant,
        step: Span | None = None,
        by: StatsBy = "queue",
        queue: str | None = None,
        task: str | None = None,
    ) -> "list[StatsSeries]":
        """How long jobs waited and ran, what ended and arrived, per step of whole minutes: a series for each
        queue (or, by "task", for each task in each queue), in the order of their names, of those of which
        something is known. From `since` (rounded down to the step) until `until` (exclusive; its minute is
        counted whole). Without `step` one step of it all, from `since` (rounded down to the minute).
        `queue`, `task`: of these alone.

        Waiting and run times come from members' batches, so they are some seconds behind (`HEARTBEAT`), and
        lack what killed processes had seen. What ended is exact. What arrived, the stock and the oldest ready
        job are from `queues.sample`. All is kept for 32 days. `BadInput` for a step that is not of whole
        minutes, more than 100,000 steps, and a task without `by="task"`."""
        ...

    async def log(self, job: JobId, *, after: int = 0, limit: int = 1_000) -> "list[StoredLine]":
        """Log lines in the order of (fence, number), skipping the first `after`."""
        ...

    async def checkpoints(self, job: JobId) -> "list[Checkpoint]":
        """The durable steps of a job, in the order in which they were first written."""
        ...

    async def audit(self, *, before: int | None = None, limit: int = 100) -> "list[AuditEntry]":
        """Operator actions, newest first, with numbers below `before`."""
        ...

    async def storage(self) -> Storage:
        """How much room the state takes and who keeps it from being used again, as the store itself
        accounts for it: estimates are enough, nothing is counted for this. What the store does not
        know, or does not show to us, is None or left out. Cheap enough for once a minute."""
        ...

    async def list(self, only: JobFilter, *, cursor: str | None = None, limit: int = 100) -> Page:
        """Jobs by filter, without body, result and `failures` (`error` is filled).

        By state (in the order of `JobState`), then queue name, then: ready by priority, plain jobs
        before suspects, group, seq (those that stand aside in groups of their own, by task: where these stand
        in their priority is the engine's choice); scheduled by due time, then seq; blocked and running by
        creation;
        finished ones newest end first, then newest creation. The
        cursor continues exactly there: a job that stays put is neither skipped nor repeated. It belongs to
        this filter and no other: with another one, cut off or altered, it is `BadInput`.

        An order answers: state, queue, group; task, of dead jobs; since and until, of finished and scheduled
        jobs; priority, of ready ones. The rest are filters on the way: one call scans no more than
        `SCAN_LIMIT` jobs and may answer a short page with a cursor. No OFFSET inside: page n costs what
        page 1 did. A group has dead jobs alone: with another state it is `BadInput`.
        """
        ...

    async def dead_groups(
        self,
        *,
        queue: str | None = None,
        task: str | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> GroupPage:
        """The dead letters that are kept, by what they died of: one group for each queue, task and
        fingerprint of the last failure, in the order of these (by bytes). All of it comes from an order of
        the dead letters themselves, so a replay, a drop or a prune needs no decrement. Counts above 10,000
        may be some seconds old: `DeadGroup.age`. The cursor belongs to this filter, as that of `list` does,
        and page n costs what page 1 did."""
        ...
