"""The engine contract.

An engine is where state lives. It holds storage and nothing else: policy (retry arithmetic, lane
and gate rules, cron, what a lost run means) is pure code in `tidemill.model`, which an engine calls
or mirrors in its own language. What passes `tidemill.testing.contract` is an engine.

An `Engine` carries small protocols, *facets*, cut by who uses them and by what must be atomic
together. These rules hold for every method and are not repeated below:

**One call, one atomic step.** A call is applied as a whole or not at all, in one round trip, and is
durable as the engine is configured when it returns. Whatever dies in between, no half of it is seen.

**Errors.** `BadInput` and `Refused` changed nothing. `EngineUnavailable` means "unknown": it may
have been applied, and the caller repeats the same call. Every method says what a repeat answers.
`EngineFull` and `EngineClosed` changed nothing; repeating the latter does not help.

**Arguments.** What one store would refuse, another keep and a third misread is `BadInput` on all of them,
before anything is done: an id of a job, a member or a claimant, or a token, that is not 16 bytes; a fence, a
count or a number of a claim or a line that is not a whole number from 0 to below 2**53; a name, a reason, a
holder, a level, a topic or another short text with a zero character or a lone surrogate; bytes that are not
`bytes`. Of messages, which running code writes, lone surrogates are spelled out instead (`\\udc80`).
`engine.shared.checks` has these rules.

**Batches.** Methods take up to `BATCH_LIMIT` items (more is `BadInput`) and answer in the order of
the items. An item that occurs twice in one call is treated as two calls in that order.

**Time.** The engine's clock is the only wall clock. Callers pass spans; the engine adds its own
now. Every timed method accepts an explicit `now` *for tests only*; a test that passes it passes it
to all calls.

**Fences.** A run is named by `(job id, fence)`. Fences are unique and growing in a namespace, over
crashes and restores too. A fenced write applies only while the job is `running` under exactly that
fence; otherwise it answers `STALE` and changes nothing.

**States.** `tidemill.model.jobs.lifecycle` is the only authority, enforced inside the step. `expires_at` is
cleared when a job ends. Children react to their parents' end after the call's own items.

**Order.** A `seq` is drawn each time a job becomes ready by enqueue, due time, retry, replay or
unblocking, in the order in which that happens, and *kept* by release, retire, reclaim and a heartbeat
that releases. Jobs of one call get theirs in the order of the call.

**Aside.** A ready job may *stand aside*: claims that know its task read it at its old place, the others do
not read it at all. What a claim does not take because of its task is set aside, so that each job is passed
over once. Everything else treats it as what it is: a ready job.

**Signals.** After the step, the process that made it publishes (may be lost): `ready_topic(queue)` when
something became claimable there, or will by time alone (so that timers are set); `waiter_topic(waiter)`
for each watched job that ended; `member_topic(member)` when a running job of that member was asked to
stop.

**Counting.** Finished jobs and failed attempts are counted per queue and minute in the same step
(`inspect.counts`, `inspect.series`), so that retention does not falsify them. A failed attempt is a
settled `Failed`; crashes and lost runs are not among them.

**Moves.** Events are emitted by the process that made the change, so a step names what its caller cannot read
from arguments and answer. A method with `moves` adds to it, once the step is made and in the order in which
that happened, each job that came into another state: by its time, by the end of a parent, by expiring, by
being released, lost, cancelled, replayed or tried again, with the reason where a failure was recorded; each
job of a `then` that is new; and each new job with parents. Not named are what a claim took and what
completed: the answer says it. At most `MOVES_LIMIT` are named, `missed` counts the others. None: there are no
listeners, and nothing is gathered or sent. A call that fails names nothing; a repeat names what the repeat
moved.

**Tombstones.** Of a job whose queue keeps nothing of its final state (`Keep.nothing`) only id, task,
queue, state, fence, settled fence and `ended_at` stay, for `TOMBSTONE_AGE`. enqueue, settle, release,
cancel, watch and `after` know it; get, list, counts, replay, drop, log and checkpoints do not.

**Audit.** Methods with `by` write one audit entry per call that changed something, in the same
step, when `by` is not empty. Entries are kept for ever: operators act rarely.
"""

from tidemill.engine.protocol.cluster import LeasesFacet, MembersFacet, SignalsFacet, Subscription
from tidemill.engine.protocol.engine import Engine, OpenEngine
from tidemill.engine.protocol.inspect import InspectFacet
from tidemill.engine.protocol.jobs import JobsFacet, Promoted, Pruned, Reclaimed, Settled
from tidemill.engine.protocol.limits import (
    ASIDE_LIMIT,
    BATCH_LIMIT,
    HANDLED_LIMIT,
    PROMOTE_LIMIT,
    PRUNE_LEAST,
    PRUNE_LIMIT,
    UNKNOWN_LIMIT,
    WHY_LIMIT,
)
from tidemill.engine.protocol.queues import QueuesFacet, TasksFacet
from tidemill.engine.protocol.schedules import Fired, SchedulesFacet
from tidemill.engine.protocol.transactions import BlockingFacet, CheckKnown, Script, TransactionsFacet

__all__ = [
    "ASIDE_LIMIT",
    "BATCH_LIMIT",
    "HANDLED_LIMIT",
    "PROMOTE_LIMIT",
    "PRUNE_LEAST",
    "PRUNE_LIMIT",
    "UNKNOWN_LIMIT",
    "WHY_LIMIT",
    "BlockingFacet",
    "CheckKnown",
    "Engine",
    "Fired",
    "InspectFacet",
    "JobsFacet",
    "LeasesFacet",
    "MembersFacet",
    "OpenEngine",
    "Promoted",
    "Pruned",
    "QueuesFacet",
    "Reclaimed",
    "SchedulesFacet",
    "Script",
    "Settled",
    "SignalsFacet",
    "Subscription",
    "TasksFacet",
    "TransactionsFacet",
]
