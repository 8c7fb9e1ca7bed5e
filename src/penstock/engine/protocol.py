"""The engine contract.

An engine is where state lives. It holds storage and nothing else: policy (retry arithmetic, lane
and gate rules, cron, what a lost run means) is pure code in `penstock.model`, which an engine calls
or mirrors in its own language. Whoever passes `penstock.testing.contract` is an engine.

An `Engine` carries small protocols, *facets*, cut by who uses them and by what must be atomic
together. These rules hold for every method and are not repeated below:

**One call, one atomic step.** A call is applied as a whole or not at all, in one round trip, and is
durable as the engine is configured when it returns. Whatever dies in between, no half of it is seen.

**Errors.** `BadInput` and `Refused` changed nothing. `EngineUnavailable` means "unknown": it may
have been applied, and the caller repeats the same call. Every method says what a repeat answers.
`EngineFull` and `EngineClosed` changed nothing; repeating the latter does not help.

**Batches.** Methods take up to `BATCH_LIMIT` items (more is `BadInput`) and answer in the order of
the items. An item that occurs twice in one call is treated as two calls in that order.

**Time.** The engine's clock is the only wall clock. Callers pass spans; the engine adds its own
now. Every timed method accepts an explicit `now` *for tests only*; a test that passes it passes it
to all calls.

**Fences.** A run is named by `(job id, fence)`. Fences are unique and growing in a namespace, over
crashes and restores too. A fenced write applies only while the job is `running` under exactly that
fence; otherwise it answers `STALE` and changes nothing.

**States.** `penstock.model.lifecycle` is the only authority, enforced inside the step. `expires_at` is
cleared when a job ends. Children react to their parents' end after the call's own items.

**Order.** A `seq` is drawn each time a job becomes ready by enqueue, due time, retry, replay or
unblocking, in the order in which that happens, and *kept* by release, retire, reclaim and a beat
that gives back. Jobs of one call get theirs in the order of the call.

**Signals.** After the step, whoever made it publishes (may be lost): `ready_topic(queue)` when
something became claimable there, or will by time alone (so that timers are set); `waiter_topic(waiter)`
for each watched job that ended; `member_topic(member)` when a running job of that member was asked to
stop.

**Counting.** Finished jobs and failed attempts are counted per queue and minute in the same step
(`inspect.counts`, `inspect.series`), so that retention does not falsify them. A failed attempt is a
settled `Failed`; crashes and losses are not among them.

**Tombstones.** Of a job whose queue keeps nothing of its final state (`Keep.nothing`) only id, task,
queue, state, fence, settled fence and `ended_at` stay, for `TOMBSTONE_AGE`. enqueue, settle, release,
cancel, watch and `after` know it; get, list, counts, replay, drop, log and checkpoints do not.

**Audit.** Methods with `by` write one audit entry per call that changed something, in the same
step, when `by` is not empty. Entries are kept for ever: operators act rarely.
"""

from collections.abc import Generator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from penstock.model.errors import Refused
from penstock.model.event import Signal
from penstock.model.ids import JobId
from penstock.model.job import CancelAnswer, DropAnswer, Fence, Job, NewJob, ReplayAnswer
from penstock.model.member import BeatReply, ClaimantBeat, Member, MemberInfo
from penstock.model.queue import Keep, QueueOptions
from penstock.model.run import (
    Answer,
    Checkpoint,
    Claim,
    ClaimRequest,
    Fate,
    Loss,
    Note,
    Release,
    Settlement,
    StoredLine,
)
from penstock.model.schedule import Schedule
from penstock.model.storage import Storage
from penstock.model.time import Instant, Span
from penstock.model.view import (
    WINDOW,
    AuditEntry,
    JobFilter,
    Lease,
    Page,
    QueueCounts,
    QueueInfo,
    SeriesPoint,
    Statement,
    TaskEntry,
)

T = TypeVar("T")

Script: TypeAlias = Generator[Statement, Sequence[Sequence[Any]], T]
"""Statements for a connection of the caller's own, one after the other: each is yielded, its rows are sent
back (none: an empty list), the answer is returned. A script does no I/O itself."""

BATCH_LIMIT = 1_000
"""The most items in one call."""
PROMOTE_LIMIT = 1_000
"""The most due jobs that one claim moves to ready in each queue it looks at; the most children that
one step unblocks before it leaves the rest to the next claim or promote."""
PRUNE_LIMIT = 5_000
"""The most jobs that one prune deletes."""
PRUNE_LEAST = 500
"""So many a prune deletes even if that takes long."""


class Settled(msgspec.Struct):
    """The answer to a settle."""

    answers: list[Answer]
    claim: Claim | None = None
    """The next batch, if one was asked for and granted."""
    refused: Refused | None = None
    """Why the claim was not granted; the outcomes are applied all the same."""


class Promoted(msgspec.Struct):
    """The answer to a promote."""

    jobs: int
    """How many jobs moved: became ready, expired, or were unblocked."""
    wait: Span | None
    """From now to the next due time of any queue; 0: there is more to do at once; None: nothing
    waits."""


class Reclaimed(msgspec.Struct):
    """The answer to a reclaim."""

    entitled: bool
    """False: the sweeper's own beats have not been unbroken for a lease; nothing was done."""
    jobs: int = 0
    gone: list[str] = []
    """Names of the members that were dropped."""


class Pruned(msgspec.Struct):
    """The answer to a prune."""

    jobs: int
    more: bool
    """A bound was reached: there may be more to prune."""


class Jobs(Protocol):
    """For producers and workers: everything that changes a job."""

    async def enqueue(self, jobs: Sequence[NewJob], *, now: Instant | None = None) -> list[bool]:
        """Store new jobs: True where created, False where a job with that id exists.

        An existing id (retained, or a tombstone) is left exactly as it is, whatever the payload and the
        parents: that makes a repeat harmless. State: `blocked` if it waits for a parent, else
        `scheduled` if its due time lies ahead, else `ready`. `due_at` is now + delay, or `at`; a due
        time not after now is ready at once and stored as None. Unknown queues come into being with
        default options.

        Parents (`after`) are jobs known to the engine or standing *earlier* in this call, else
        `UnknownParent` and nothing is stored. A parent that is `completed` counts as done; one that
        is `dead` or `cancelled` acts by the child's `parent_died` at once: "cancel" stores the child
        and cancels it, "run" counts the parent as done, "wait" waits for its replay.

        Checks every job by `check_new_job` before anything is stored. Where the store has more than one
        writer it never waits for a user's transaction, except one that is storing the same id. One
        producer's calls get `seq` in the order in which they return.
        """
        ...

    async def claim(self, request: ClaimRequest, *, now: Instant | None = None) -> Claim:
        """Take ready jobs: each becomes `running` under a fresh fence, held by the claimant.

        `Refused`, nothing changed: `MemberGone` if the member is not registered by a beat;
        `ClaimantRetired` after `retire`; `ClaimOutOfOrder` for a number lower than the last that took
        jobs. The same number as the last that took jobs: returns the jobs of that claim that are still
        running under it, with the same fences, and takes nothing (`wait` is 0: go on). (A number that
        took nothing may be asked again and may then take.) A claimant belongs to the member under which
        it first took jobs; another member's is `BadInput`, as is a queue that occurs twice in `wants`.

        First, in the wanted queues and in this same step: due jobs move to ready in the order of due
        time, then of their former seq, at most `PROMOTE_LIMIT` a queue; jobs to which a changed
        option gave another lane move there. Then up to `most` jobs are taken:

        - the wanted queues take turns, one job each, in the order of `turn_order` from the one that
          gave this claimant's last job, up to each `Want.most`; a paused or unknown queue gives
          nothing;
        - in a queue, lower priority numbers strictly first;
        - lanes of one priority take turns by `weight_of`, in the order of `turn_order` from where
          this claimant last stopped (positions are the engine object's memory);
        - in a lane, by `seq`;
        - a job whose `expires_at` has come is not taken but becomes dead ("expired");
        - suspects: at most `request.suspects`; they do not hold back others of their lane;
        - gates: a lane gives jobs only while each of its gates (`gates_of`) has room: running jobs
          behind the gate < concurrency, and permits left in the rate's log. Both are taken in this
          step, at every instant by the engine's clock. A rate permit is never given back.

        With `ids`, only those jobs are considered, in that order, under the same gates and pauses,
        whatever queue they are in.

        Effects on a taken job: state, fence (growing in the order of the answer), claimant, member,
        `claimed_at` = now, `started_at` cleared; progress and checkpoints of earlier runs stay.

        Concurrent claims never take the same job, and never pass over a visible free one except while
        another is taking it. (An engine with concurrent writers may find a late commit up to 1 s later,
        and what a rolled-back claim had locked up to one lease later.) The cost depends on open lanes,
        never on the number of scheduled, parked or finished jobs. A claim that takes nothing writes
        nothing durable. `Claim.wait` as documented there; exact to the engine's clock.
        """
        ...

    async def settle(
        self,
        settlements: Sequence[Settlement],
        *,
        claim: ClaimRequest | None = None,
        now: Instant | None = None,
    ) -> Settled:
        """Record outcomes, and claim the next batch in the same trip, seeing the freed permits.

        Each answers `APPLIED`; `ALREADY` if this very run was settled before (`settled_fence` equals
        the fence: a repeat whose first answer was lost; known at least until the job is settled
        again, and for an hour after `keep=0` deleted it); `STALE` otherwise.

        `started_at` = now - ran, unless written before; `ended_at` = now on a final state.
        - `Completed`: completed, whatever was asked; uses an attempt. The result is kept; with the
          queue's `keep_body=False` body and result are dropped; with `keep_completed.nothing` only a
          tombstone stays.
        - `Failed`: uses an attempt and appends the failure, clipped by `clip_failure` and filled in.
          Cancel was asked: cancelled. Else `retry_in` given: scheduled for now + retry_in (also when
          0). Else dead.
        - `Stopped`: cancelled, no attempt used.
        - `Crashed`: as `retire` with the verdict "crash" does for this one run: `after_claimant_lost`
          decides, no attempt is used, a failure of kind "crash" is appended, the `seq` is kept.
        - `then`: only with `APPLIED`: its jobs (without `after`, else `BadInput`) are enqueued (an
          existing id is passed over), its schedule's `next_at` is set if that schedule exists.

        Permits are freed because the job no longer runs. Children: a completed parent is done for
        them, a dead or cancelled one acts by their `parent_died`; at 0 parents left a child becomes
        scheduled or ready. At most `PROMOTE_LIMIT` children move in this step; the rest follow with
        the next claims and promotes.
        """
        ...

    async def write(self, notes: Sequence[Note], *, now: Instant | None = None) -> list[Answer]:
        """Record something about runs: `APPLIED` or `STALE`.

        A repeat answers `APPLIED` again and has no further effect: `Started` keeps the first time,
        `Progress` is replaced, a `LogLine` is known by (fence, number), a `Checkpoint` by its name
        (the first value stays). Of a job's log the newest `LOG_LINES_KEPT` are kept.
        """
        ...

    async def release(self, releases: Sequence[Release], *, now: Instant | None = None) -> list[Answer]:
        """Give jobs back without using an attempt.

        `APPLIED`: to ready with its old `seq` (delay None), or to scheduled for now + delay; a job
        that was asked to stop becomes cancelled. `ALREADY`: not running, and its last fence is this
        one and was not settled (released before, by us or for us). `STALE`: anything else. In ready
        `ready_at` = now; here and wherever else a run is given back.
        """
        ...

    async def cancel(
        self, ids: Sequence[JobId], *, by: str = "", now: Instant | None = None
    ) -> list[CancelAnswer]:
        """Stop jobs. Not started: `cancelled` at once, and it never starts. Running: `cancel_asked`
        is set, the member is signalled and told by its next beat. A repeat answers the same, unless the
        job moved on."""
        ...

    async def replay(
        self, ids: Sequence[JobId], *, token: bytes, by: str = "", now: Instant | None = None
    ) -> list[ReplayAnswer]:
        """Run finished jobs again: ready at the end of their lane, at once.

        `attempts`, `crashes`, `losses` start again at 0; cancel_asked, result, progress, ended_at,
        due_at and expires_at are cleared; `replays` grows; failures, `suspect` and the log stay. The
        checkpoints of a completed job are cleared; of a dead or cancelled one they stay, so that it
        goes on where it was. `token` (16 bytes, new for each wish to replay) is remembered with the
        job: a repeat of the call answers `REPLAYED` and replays nothing a second time. A tombstone
        answers `UNKNOWN`.
        """
        ...

    async def drop(
        self, ids: Sequence[JobId], *, by: str = "", now: Instant | None = None
    ) -> list[DropAnswer]:
        """Delete finished jobs with everything kept about them. Children still waiting for a dropped
        parent (`parent_died="wait"`) are cancelled. A repeat answers `UNKNOWN`."""
        ...

    async def watch(
        self, ids: Sequence[JobId], *, waiter: str, ttl: Span, now: Instant | None = None
    ) -> list[Job | None]:
        """Answer the present records (None: unknown) and, in the same step, remember for `ttl` that
        `waiter` wants a signal when those that have not ended do. A tombstone is answered with its
        id, task, queue, state and `settled_fence`. `failures` is not filled. Repeating prolongs."""
        ...

    async def promote(self, *, limit: int = PROMOTE_LIMIT, now: Instant | None = None) -> Promoted:
        """Move due jobs of all queues to ready (as claim does), make expired ones dead, and go on
        unblocking children: at most `limit` of each kind. Paused queues too: a pause holds back claims,
        not time. Needs no leader; a repeat finds less to do."""
        ...

    async def retire(
        self, claimant: bytes, losses: Sequence[Loss] = (), *, now: Instant | None = None
    ) -> int:
        """A child is dead: give back every job that it holds, and refuse its claims from now on.

        A job named in `losses` (matching fence) follows `after_claimant_lost` with its verdict, and
        the loss is appended to its failures as "crash" or "lost"; the others are released with their
        `seq`. Answers how many jobs it held; a repeat answers 0. A claimant that never claimed is
        remembered as retired all the same, for at least an hour.
        """
        ...

    async def reclaim(
        self, member: bytes, *, limit: int = BATCH_LIMIT, now: Instant | None = None
    ) -> Reclaimed:
        """Sweep: give back, at most `limit` at a call, the jobs of members that are gone.

        `member` is the sweeper. Unless `may_sweep` holds for its own beats in the engine (an unknown
        member never may), nothing happens and `entitled` is False. Each job of a gone member follows
        `after_member_lost` (`started`: a `Started` was written for this run) and gets a failure of
        kind "lost" ("crash" when that proved one). A gone member without jobs left is dropped, its
        claimants are retired. Several sweepers at once do no harm.
        """
        ...

    async def prune(self, *, limit: int = PRUNE_LIMIT, now: Instant | None = None) -> Pruned:
        """Retention: delete, at most `limit` jobs at a call, finished jobs beyond their queue's
        `keep_*` age or count (oldest end first), tombstones past `TOMBSTONE_AGE`; also expired
        watches, retired claimants after an hour and minute counts after 32 days. What drop says of
        children holds here too. A call is short, because others wait for what it locks: from
        `PRUNE_LEAST` jobs on the engine may stop at any time, and say `more`. A bound by a count of
        more than 10,000 may be looked at once a minute only."""
        ...


class Inspect(Protocol):
    """For API, CLI and UI. Reads never hold up writers; what they see is one moment."""

    async def get(self, ids: Sequence[JobId], *, now: Instant | None = None) -> list[Job | None]:
        """Full records with kept failures, oldest first. Unknown ids and tombstones: None."""
        ...

    async def counts(self, *, window: Span = WINDOW, now: Instant | None = None) -> list[QueueCounts]:
        """Every queue, by name, empty ones too. Live counts are at most 1 s old below 100,000 in a
        state; `age` tells. `window` is cut to whole minutes, the current one included."""
        ...

    async def series(
        self, *, since: Instant, until: Instant, step: Span, queue: str | None = None
    ) -> list[SeriesPoint]:
        """What ended per step of whole minutes, zeros included, from `since` (rounded down to the
        step) until `until` (exclusive); of one queue or of all."""
        ...

    async def log(self, job: JobId, *, after: int = 0, limit: int = 1_000) -> list[StoredLine]:
        """Log lines in the order of (fence, number), skipping the first `after`."""
        ...

    async def checkpoints(self, job: JobId) -> list[Checkpoint]:
        """The durable steps of a job, in the order in which they were first written."""
        ...

    async def audit(self, *, before: int | None = None, limit: int = 100) -> list[AuditEntry]:
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
        before suspects, group, seq; scheduled by due time, then seq; blocked and running by creation;
        finished ones newest end first, then newest creation. The
        cursor continues exactly there: a job that stays put is neither skipped nor repeated. Task,
        key, tag and text are filters on the way: one call looks at no more than `SCAN_LIMIT` jobs and
        may answer a short page with a cursor. No OFFSET inside: page n costs what page 1 did.
        """
        ...


class Queues(Protocol):
    """For operators, and for the code that declares queues."""

    async def configure(
        self, name: str, options: QueueOptions, *, by: str = "", now: Instant | None = None
    ) -> None:
        """Replace a queue's options; creates the queue. In force for the next claim anywhere, also
        for jobs that wait or run already; what the log of a rate still holds counts by the new window.
        A repeat changes nothing."""
        ...

    async def list(self) -> list[QueueInfo]:
        """All queues, by name."""
        ...

    async def pause(self, name: str, *, by: str = "", why: str = "", now: Instant | None = None) -> None:
        """No claim takes from it; what runs goes on. `UnknownQueue` if there is none. A repeat keeps
        the first pause's time and reason."""
        ...

    async def resume(self, name: str, *, by: str = "", now: Instant | None = None) -> None:
        """End a pause. `UnknownQueue` if there is none; a repeat changes nothing."""
        ...


class Tasks(Protocol):
    """The catalogue of tasks that workers publish."""

    async def publish(self, entries: Sequence[TaskEntry], *, now: Instant | None = None) -> None:
        """Add or replace entries by name."""
        ...

    async def list(self) -> list[TaskEntry]:
        """All entries, by name."""
        ...


class Schedules(Protocol):
    """For the controller, and for those who declare schedules."""

    async def put(self, schedules: Sequence[Schedule], *, by: str = "", now: Instant | None = None) -> None:
        """Add or replace by name. `last_at` and `paused` stay; `retired_at` is cleared. If the timing is as
        before and it was not retired, `next_at` stays too, else it is taken from the argument. `version`
        grows if timing, job, missed, overlap or source changed. A schedule with a `source` whose
        `declared_at` is lower than the stored one's changes nothing: newer code has spoken. Nor does a
        repeat. Checks every schedule by `check_schedule` before anything is stored."""
        ...

    async def list(self) -> list[Schedule]:
        """All, by name."""
        ...

    async def fire(
        self,
        name: str,
        *,
        tick: Instant | None,
        before: Instant | None,
        next_at: Instant | None,
        jobs: Sequence[NewJob],
        last_at: Instant | None = None,
        asked: bool = False,
        by: str = "",
        now: Instant | None = None,
    ) -> bool:
        """Advance and insert in one step: if `next_at` is still `tick` and `last_at` still `before`, as the
        caller has read them (None: still none), and the schedule is neither paused nor retired, set the new
        `next_at` and enqueue the jobs. Otherwise False, and nothing changed: somebody else was first, or this
        is a repeat (the jobs' ids come from their ticks).

        `last_at`: the tick of the last of the jobs, which is not `tick` where ticks were missed: by it the
        next firing finds the job. None leaves the stored one: a firing without jobs passes the tick over.
        `asked`: somebody wants a run now, at a tick of its own; a pause does not refuse it."""
        ...

    async def pause(
        self,
        name: str,
        *,
        paused: bool,
        next_at: Instant | UnsetType | None = UNSET,
        by: str = "",
        now: Instant | None = None,
    ) -> bool:
        """Pause or resume. `next_at`, if given (None: nothing is due any more), is set if this call changed
        something: the ticks of a pause were not missed. False: no such schedule."""
        ...

    async def retire(
        self,
        name: str,
        *,
        retired: bool,
        next_at: Instant | UnsetType | None = UNSET,
        by: str = "",
        now: Instant | None = None,
    ) -> bool:
        """Its code no longer declares it (`retired_at` = now), or does again. `next_at`: as with `pause`.
        False: no such schedule. A repeat keeps the first time."""
        ...

    async def remove(self, name: str, *, by: str = "", now: Instant | None = None) -> bool:
        """Delete it; its jobs stay. False: no such schedule (a repeat)."""
        ...


class Locks(Protocol):
    """Named leases with a fence. (FIFO tickets, slots and windows come with user locks.)"""

    async def acquire(self, name: str, *, holder: str, ttl: Span, now: Instant | None = None) -> Lease | None:
        """Take the lease if nobody holds it or the former holder's ttl is over: a fresh fence. The same
        holder asking again within its ttl keeps its fence and is prolonged (a repeat). None: another
        holds it."""
        ...

    async def renew(self, name: str, *, fence: int, ttl: Span, now: Instant | None = None) -> bool:
        """Prolong from now. False: the lease has another fence now, was released, or ran out."""
        ...

    async def release(self, name: str, *, fence: int, now: Instant | None = None) -> bool:
        """Give it up. False: not held under this fence (a repeat)."""
        ...

    async def list(self, *, now: Instant | None = None) -> list[Lease]:
        """All leases in force, by name."""
        ...


class Members(Protocol):
    """For every process."""

    async def beat(
        self, info: MemberInfo, claimants: Sequence[ClaimantBeat] = (), *, now: Instant | None = None
    ) -> BeatReply:
        """Say that a member lives, and what its children hold; registers it if it is not known.

        For each claimant: a job running under it whose claim number is at most `answered_through`
        and whose fence is not in `held` is released with its `seq` (a claim or a release whose
        answer was lost on the way); a fence in `held` that is not running under it is reported as
        `lost`. Claimants that are not mentioned are left alone. `asked` lists the member's running
        jobs that were asked to stop. A repeat is just another beat.

        A store may lose what it had acknowledged (restored from a backup, restarted without its file, a
        replica took over that lagged). An engine for which that happens in ordinary operation looks for it
        here (`rolled_back`): the member then publishes tasks, queues and schedules again. Fences go on
        growing.
        """
        ...

    async def leave(self, member: bytes, *, now: Instant | None = None) -> int:
        """Sign off: release everything its claimants still hold (with `seq`, nothing is counted as
        lost), retire them, forget the member. Answers the number released; a repeat answers 0."""
        ...

    async def list(self, *, now: Instant | None = None) -> list[Member]:
        """All members known, by name, with their health."""
        ...


class Subscription(Protocol):
    """A listener on some topics."""

    async def next(self, timeout: float | None = None) -> Signal | None:
        """The next signal, or None after `timeout` seconds. A burst on one topic may arrive as one.
        A signal with `ANY_TOPIC` means: something may have changed, look."""
        ...

    async def close(self) -> None:
        """Stop listening; a pending `next` answers None."""
        ...


class Signals(Protocol):
    """Hints between processes: lossy, doubled, late, and never needed for correctness."""

    @property
    def room(self) -> int:
        """The longest text, in plain ASCII characters, that arrives whole; at least 4,000."""
        ...

    async def publish(self, topic: str, text: str = "") -> None:
        """Tell every subscriber of the topic, in all processes. Never waits for a slow one."""
        ...

    async def subscribe(self, *topics: str) -> Subscription:
        """Listen. What is published after this returns is delivered, unless it is lost."""
        ...


class Transactions(Protocol):
    """For engines that speak SQL: enqueue and complete inside the caller's own transaction.

    The scripts run on a connection of the caller's, in the caller's transaction, which may stay open for
    long and is never waited for by claims, settles of other jobs, beats or sweeps. (SQLite has one writer
    at a time: there everybody waits.) Placeholders are those of the engine's usual drivers: `$1` with a
    sequence, `:name` with a mapping. A connection that leads to another place than this engine's is
    refused (`Refused`), as far as that can be told from there."""

    def enqueue(self, jobs: Sequence[NewJob]) -> Script[None]:
        """Store these jobs: they exist if and only if that transaction commits. Checked at the call as in
        `Jobs.enqueue`; an existing id is passed over; `after` is refused. A keyed job may get its lane
        only with the next claim. The signal is sent with the commit, or left to the safety look."""
        ...

    def complete(self, settlement: Settlement, notes: Sequence[Note] = ()) -> Script[Answer]:
        """Record one outcome, which must be `Completed`, and before it what the same run still had to note:
        it stands if and only if that transaction commits.

        The answers of `Jobs.settle`, judged inside the transaction; after `ALREADY` and `STALE` nothing was
        written, and the caller should roll back. After `APPLIED` and the commit everything is as with a
        settle, `then` included; until then nothing is to be seen, and the run holds its job. Children
        follow with the next claim or promote; waiters are told with the commit, or by their own look."""
        ...

    async def fates(self, runs: Sequence[tuple[JobId, Fence]]) -> list[Fate]:
        """What became of runs that were completed this way. Waits for no transaction. An engine that cannot
        tell `OPEN` from `FREE` answers `FREE`: there a settle waits for the transaction, or finds that it
        is `ALREADY` settled."""
        ...


class Blocking(Protocol):
    """For threads that wait anyway, on engines whose calls block a thread in any case: the work is done in
    the caller's own thread instead of on the engine's loop."""

    def enqueue(self, jobs: Sequence[NewJob], *, now: Instant | None = None) -> list[bool]:
        """`Jobs.enqueue` for any thread except the loop's own; returns after the commit. Calls of several
        threads at once are merged as those of tasks are. An interrupt (an exception raised by a signal's
        handler) leaves nothing half-written; whether the jobs were stored is then unknown."""
        ...


class Engine(Protocol):
    """All facets of one namespace. Safe for use from any task of the loop that opened it."""

    @property
    def name(self) -> str:
        """For people: scheme and place, never a password."""
        ...

    @property
    def single_process(self) -> bool:
        """True: the state lives in this process and cannot be shared with others."""
        ...

    @property
    def keeps(self) -> Keep:
        """What is kept of completed and cancelled jobs in a queue that does not say it (`QueueOptions`)."""
        ...

    @property
    def jobs(self) -> Jobs: ...

    @property
    def blocking(self) -> Blocking | None:
        """None where calls need the loop: a thread then goes through it."""
        ...

    @property
    def inspect(self) -> Inspect: ...

    @property
    def queues(self) -> Queues: ...

    @property
    def tasks(self) -> Tasks: ...

    @property
    def schedules(self) -> Schedules: ...

    @property
    def locks(self) -> Locks: ...

    @property
    def members(self) -> Members: ...

    @property
    def signals(self) -> Signals: ...

    @property
    def transactions(self) -> Transactions | None:
        """None where the engine has no SQL that a user's connection could run."""
        ...

    async def now(self) -> Instant:
        """The engine's clock."""
        ...

    async def close(self) -> None:
        """Finish the calls already made, then let go of every connection, thread and socket. Calls
        after it raise `EngineClosed`."""
        ...


class OpenEngine(Protocol):
    """What an engine package offers to the registry: `open_engine`."""

    async def __call__(self, url: str, *, namespace: str, migrate: bool = True) -> Engine:
        """Connect, check that the place is ours and its schema fits, migrate if allowed.

        Options of the engine stand in the URL's query; an unknown one is `BadUrl`. Raises `BadUrl`,
        `NotOurs`, `SchemaTooNew`, `SchemaTooOld`, `EngineDamaged` or `EngineUnavailable`, with what to do.
        Starting processes may race: one migrates, the others wait for it."""
        ...
