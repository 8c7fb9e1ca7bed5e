"""The `jobs` facet: everything that changes a job."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from tidemill.engine.protocol.limits import BATCH_LIMIT, PROMOTE_LIMIT, PRUNE_LIMIT
from tidemill.model.errors import Refused
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import (
    CancelAnswer,
    DropAnswer,
    Edit,
    JobRecord,
    NewJob,
    ReplayAnswer,
    RunNowAnswer,
    Stored,
)
from tidemill.model.jobs.move import Moves
from tidemill.model.jobs.run import (
    Answer,
    Claim,
    ClaimRequest,
    LostRun,
    Note,
    Release,
    Settlement,
)
from tidemill.model.time import Instant, Span


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
    """False: the sweeper's own heartbeats have not been unbroken for a lease; nothing was done."""
    jobs: int = 0
    gone: list[str] = []
    """Names of the members that were dropped."""


class Pruned(msgspec.Struct):
    """The answer to a prune."""

    jobs: int
    more: bool
    """A bound was reached: there may be more to prune."""


class JobsFacet(Protocol):
    """For producers and workers: everything that changes a job.

    A job with `on_dead` that becomes `dead`, by whatever call and for whatever reason, leaves a job of that
    task in the same step, before its dependents move: `model.death.handler_job` says what it is made of.
    It carries what was known of the dead job, so nothing else of that has to be kept. Its id follows from
    the dead job's and its replays (`handler_id`); if a job has that id, the next one that is free is taken:
    each death has one handler. It has no `on_dead` itself. Its queue, priority, timeout and attempts are
    those of the task's entry in the catalogue at this moment; without an entry, or with one that this engine
    cannot read, it stands in the dead job's queue with the defaults of `NewJob`."""

    async def enqueue(
        self, jobs: Sequence[NewJob], *, moves: Moves | None = None, now: Instant | None = None
    ) -> list[Stored]:
        """Store new jobs: of each which job is there now, and whether this call created it.

        An existing id (retained, or a tombstone) is left exactly as it is, whatever the payload and the
        parents: that makes a repeat harmless. Of two calls at once that bring the same id exactly one is
        `created`, and a `watch` or `inspect.get` that begins after another answer finds the job
        that has the id, unless it was deleted since. (So the caller can tell a repeat from another call
        under the same id: `app.same_call`.) State: `blocked` if it waits for a parent, else
        `scheduled` if its due time lies ahead, else `ready`. `due_at` is now + delay, or `at`; a due
        time not after now is ready at once and stored as None. Unknown queues come into being with
        default options.

        Parents (`after`) are jobs known to the engine or standing *earlier* in this call, else
        `UnknownParent` and nothing is stored. A parent that is `completed` counts as done; one that
        is `dead` or `cancelled` acts by the child's `parent_died` at once: "cancel" stores the child
        and cancels it, "run" counts the parent as done, "wait" waits for its replay. What is ready or
        cancelled in this step has its `created_at` as `ready_at` or `ended_at`. `moves` names each new job
        that has parents, in the state in which they have put it. (That of the others follows from their
        arguments.) So are jobs that a `replace` brought into another state.

        A job with a unique key (`model.jobs.unique`), whose id is new:

        - Its key is free: it is stored, and holds the key, in the same step. A key belongs to the job's task.
          `until="end"`: held until the job is completed, dead or cancelled; "start": until a claim takes it.
          A key with a `period` is held from now to now + period, whatever becomes of the job, also past drop
          and tombstone. Keys of the two kinds never meet.
        - Another job holds it: that job is *met*, and nothing is stored. "existing": the answer is the met
          job, not created. (Of a period, it may have ended and be gone.) "refuse": `NotUnique` with its id,
          and nothing of the call is stored. "replace": if the met job is blocked, scheduled or ready, it gets
          body, codec, headers, key, priority, due time and expiry of the new one in the same step, with a new
          `seq`, and keeps everything else: id, queue, timeout, retry, attempts used, parents, `created_at`. A
          met job that runs, or has ended, counts as existing. The due time is `replaced_due`; a ready job of
          which `latest` has passed stays ready with its seq. The last `REPLACING_KEPT` ids that replaced a
          job are remembered with it, as long as it is known.
        - A key that a job of the same id holds is no conflict.

        An id that is known counts first, and its key is not looked at: so a repeat never meets itself. An id
        that is remembered as replacing answers with the job that it replaced, and changes nothing. In one
        call, two jobs of one key are two calls in their order (but where a job stands that is replaced in its
        own call, among the jobs of that call, is not fixed). The parents of a call that meets a job are not
        looked at; a parent that stands earlier in the call and met another job is unknown. Where the store
        has more than one writer, a call waits for another one that is storing the same key, a user's
        transaction included, at most as long as the engine waits for locks (then `EngineUnavailable`).

        Checks every job by `check_new_job` before anything is stored. Where the store has more than one
        writer it never waits for a user's transaction, except one that is storing the same id or unique key.
        One producer's calls get `seq` in the order in which they return.
        """
        ...

    async def claim(
        self, request: ClaimRequest, *, moves: Moves | None = None, now: Instant | None = None
    ) -> Claim:
        """Take ready jobs: each becomes `running` under a fresh fence, held by the claimant.

        `Refused`, nothing changed: `MemberGone` if the member is not registered by a heartbeat;
        `ClaimantRetired` after `retire`; `ClaimOutOfOrder` for a number lower than the last that took
        jobs. The same number as the last that took jobs: returns the jobs of that claim that are still
        running under it, with the same fences, and takes nothing (`wait` is 0: go on). (A number that
        took nothing may be asked again and may then take.) A claimant belongs to the member under which
        it first took jobs; another member's is `BadInput`, as is a queue that occurs twice in `wants`, a
        name that no queue can have, an id in `ids` that is none, and a number below 1.

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
        - a job of a task that is paused or that `request.unknown` names (at most `UNKNOWN_LIMIT`, each once,
          else `BadInput`) is not taken but *set aside*: it stays ready with its `seq`, and from now on only
          claims that may take it read it, by `seq`, as if it stood in its lane as before. It uses no permit,
          counts for no bound and holds back no other. If the claim named its task, it shows the reason
          "unknown task", as if the claimant had released it. One claim sets at most `ASIDE_LIMIT` aside; if
          it meets more, it may end there, and `wait` is 0;
        - suspects: at most `request.suspects`; they do not hold back others of their lane;
        - gates: a lane gives jobs only while each of its gates (`model.gate`) has room: running jobs
          behind the gate < concurrency, and permits left in the rate's log. Both are taken in this
          step, at every instant by the engine's clock. A rate permit is never returned.

        A job behind a rate's gate says when it has to start, counted from the claim's `now`: `start_in` and
        `start_within`. `starts.set_starts` fills them in, from the queue's rules and from whether a gate that
        gave a permit in this claim is `gate.pressed`. If a gate of its own is, the job is delayed; if
        another gate of its queue is, it may be. Entries of a log stay for `START_DELAY` after they count.
        What a repeated claim returns comes too late for a rate (`start_within` 0): the moment of its
        permit has passed.

        With `ids`, only those jobs are considered, in that order, under the same gates, pauses and tasks,
        whatever queue they are in.

        Effects on a taken job: state, fence (growing in the order of the answer), claimant, member,
        `claimed_at` = now, `started_at` cleared; progress and checkpoints of earlier runs stay. A unique key
        `until="start"` is free.

        Concurrent claims never take the same job, and never pass over a visible free one except while
        another is taking it. (An engine with concurrent writers may find a late commit up to 1 s later,
        and what a rolled-back claim had locked up to one lease later.) The cost depends on open lanes,
        never on the number of scheduled, parked or finished jobs, nor of those that stand aside for
        others. A claim that takes nothing and sets nothing aside writes nothing durable; one that sets
        something aside signals the queue. `Claim.wait` as documented there; exact to the engine's clock.
        """
        ...

    async def settle(
        self,
        settlements: Sequence[Settlement],
        *,
        claim: ClaimRequest | None = None,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> Settled:
        """Record outcomes, and claim the next batch in the same trip, seeing the freed permits.

        Each answers `APPLIED`; `ALREADY` if this very run was settled before (`settled_fence` equals
        the fence: a repeat whose first answer was lost; known at least until the job is settled
        again, and for an hour after `keep=0` deleted it); `STALE` otherwise.

        `started_at` = now - ran, unless written before; `ended_at` = now on a final state.
        - `Completed`: completed, whatever was requested; uses an attempt. The result is kept; with the
          queue's `keep_body=False` body and result are dropped; with `keep_completed.nothing` only a
          tombstone stays.
        - `Failed`: uses an attempt and appends the failure, made by `fingerprint.as_recorded` and filled in.
          Cancel was requested: cancelled. Else `retry_in` given: scheduled for now + retry_in (also when
          0). Else dead.
        - `Stopped`: cancelled, no attempt used.
        - `Crashed`: as `retire` with the verdict "crash" does for this one run: `after_claimant_lost`
          decides, no attempt is used, a failure of kind "crash" is appended, the `seq` is kept.
        - A job that ends frees its unique key, here and wherever else it ends. One that is retried, here or
          released by whatever call, takes a key `until="start"` again if it is free at once, and else goes
          without it.
        - `then`: only with `APPLIED`: its jobs (without `after` and `unique`, else `BadInput`) are enqueued
          (an existing id is passed over), its schedule's `next_at` is set if that schedule exists.

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

    async def release(
        self, releases: Sequence[Release], *, moves: Moves | None = None, now: Instant | None = None
    ) -> list[Answer]:
        """Give jobs back without using an attempt.

        `APPLIED`: to ready with its old `seq` (delay None), or to scheduled for now + delay; a job
        that was asked to stop becomes cancelled. `ALREADY`: not running, and its last fence is this
        one and was not settled (released before, by us or for us). `STALE`: anything else. In ready
        `ready_at` = now; here and wherever else a run is released.

        `reason` is shown with the job (`JobRecord.reason`) until its next claim or its end, also when its
        due time comes in between. A repeat (`ALREADY`) changes no reason. Runs that are released for their
        holder (retire, reclaim, leave, heartbeat) have none. With the reason "snooze" a job that becomes
        ready or scheduled has one more of `snoozes`, in the same step: a repeat does not count again, and
        the next claim brings the number. With the reason "unknown task" a job that becomes ready stands
        aside: see `claim`.
        """
        ...

    async def cancel(
        self, ids: Sequence[JobId], *, by: str = "", moves: Moves | None = None, now: Instant | None = None
    ) -> list[CancelAnswer]:
        """Stop jobs. Not started: `cancelled` at once, and it never starts. Running: `cancel_requested`
        is set, the member is signalled and told by its next heartbeat. A repeat answers the same, unless the
        job moved on."""
        ...

    async def run_now(
        self, ids: Sequence[JobId], *, by: str = "", moves: Moves | None = None, now: Instant | None = None
    ) -> list[RunNowAnswer]:
        """What is scheduled becomes ready at once, at the end of its lane, as if its due time had come: a
        job that waits for a retry too. Its `due_at` is cleared. Jobs in another state are left alone. A
        repeat answers the same, unless the job moved on."""
        ...

    async def replay(
        self,
        ids: Sequence[JobId],
        *,
        token: bytes,
        edit: Edit | None = None,
        by: str = "",
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> list[ReplayAnswer]:
        """Run finished jobs again: ready at the end of their lane, at once.

        `attempts`, `crashes`, `lost_runs`, `snoozes` start again at 0; cancel_requested, result, progress,
        ended_at, due_at and expires_at are cleared; `replays` grows; failures, `suspect` and the log stay.
        The checkpoints of a completed job are cleared; of a dead or cancelled one they stay, so that it goes
        on where it was. `token` (16 bytes, new for each wish to replay; anything else is `BadInput`) is
        remembered with the job: a repeat of the call answers `REPLAYED` and replays nothing a second time. A
        tombstone answers `UNKNOWN`. The job takes its unique key again (none of a period); if another job
        holds that, the answer is `NOT_UNIQUE` and nothing changed. Its key stays what it was, also with other
        arguments.

        `edit`, for exactly one id (else `BadInput`): in the same step the job gets this body, codec and
        key, and stands in the lane of the new key. Its id stays, and so does everything that stays in any
        replay; the former arguments are forgotten. A repeat with the same token edits nothing a second
        time. In the audit it is an "edit".
        """
        ...

    async def drop(
        self, ids: Sequence[JobId], *, by: str = "", moves: Moves | None = None, now: Instant | None = None
    ) -> list[DropAnswer]:
        """Delete finished jobs with everything kept about them. Children still waiting for a dropped
        parent (`parent_died="wait"`) are cancelled. A repeat answers `UNKNOWN`."""
        ...

    async def watch(
        self, ids: Sequence[JobId], *, waiter: str, ttl: Span, now: Instant | None = None
    ) -> list[JobRecord | None]:
        """Answer the present records (None: unknown) and, in the same step, remember for `ttl` that
        `waiter` wants a signal when those that have not ended do. A tombstone is answered with its
        id, task, queue, state and `settled_fence`. `failures` is not filled. Repeating prolongs."""
        ...

    async def promote(
        self, *, limit: int = PROMOTE_LIMIT, moves: Moves | None = None, now: Instant | None = None
    ) -> Promoted:
        """Move due jobs of all queues to ready (as claim does), make expired ones dead, and go on
        unblocking children: at most `limit` of each kind, and less of expired ones with handlers if they
        are large (`HANDLED_LIMIT`). Paused queues too: a pause holds back claims, not time. Needs no leader;
        a repeat finds less to do."""
        ...

    async def retire(
        self,
        claimant: bytes,
        lost_runs: Sequence[LostRun] = (),
        *,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> int:
        """A worker process is dead: release every job that it holds, and refuse its claims from now on.

        A job named in `lost_runs` (matching fence) follows `after_claimant_lost` with its verdict, and the
        lost run is appended to its failures as "crash" or "lost"; the others are released with their `seq`. A
        lost run under a number that no fence can be is passed over: a broken process may have written it.
        Answers how many jobs it held; a repeat answers 0. A claimant that never claimed is remembered as
        retired all the same, for at least an hour.
        """
        ...

    async def reclaim(
        self,
        member: bytes,
        *,
        limit: int = BATCH_LIMIT,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> Reclaimed:
        """Sweep: release, at most `limit` at a call, the jobs of members that are gone.

        `member` is the sweeper. Unless `may_sweep` holds for its own heartbeats in the engine (an unknown
        member never may), nothing happens and `entitled` is False. Each job of a gone member follows
        `after_member_lost` (`started`: a `Started` was written for this run) and gets a failure of
        kind "lost" ("crash" when that proved one). A gone member without jobs left is dropped, its
        claimants are retired. Several sweepers at once do no harm.
        """
        ...

    async def prune(
        self, *, limit: int = PRUNE_LIMIT, moves: Moves | None = None, now: Instant | None = None
    ) -> Pruned:
        """Retention: delete, at most `limit` jobs at a call, finished jobs beyond their queue's `keep_*` age
        or count (oldest end first), tombstones past `TOMBSTONE_AGE`; also unique keys whose period is over,
        expired watches, retired claimants after an hour and minute counts after 32 days. What drop says of
        children holds here too. A call is short, because others wait for what it locks: from `PRUNE_LEAST`
        jobs on the engine may stop at any time, and say `more`. A bound by a count of more than 10,000 may be
        checked once a minute only."""
        ...
