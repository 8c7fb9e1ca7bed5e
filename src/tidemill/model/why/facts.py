"""Facts about why a job is where it is: what `inspect.why` answers.

An engine reads facts and draws no conclusion: `reasons` does that, the same for every engine. The facts are
the ones that a claim looks at: state, due time, pause, gates with their holders and logs.
"""

from collections.abc import Iterable

import msgspec

from tidemill.model.ids import JobId
from tidemill.model.jobs.job import FINAL, JobRecord, JobState
from tidemill.model.member import MemberRecord, knows_task
from tidemill.model.queues.gate import GateKind, opens_at, room_of
from tidemill.model.queues.layers import read_stored
from tidemill.model.queues.queue import Limit, QueueOptions
from tidemill.model.takers import live_workers
from tidemill.model.time import Instant

AHEAD_COUNTED = 1_000
"""Jobs that stand before a job are counted up to one more than this: "more than 1,000"."""
HOLDERS_SHOWN = 10
PARENTS_READ = 100
"""Of a job's parents so many are read: 1,000 took a script of Redis 75 ms."""
PARENTS_SHOWN = 10


class Holder(msgspec.Struct, frozen=True):
    """A running job that holds a permit of a gate."""

    id: JobId
    member: str
    since: Instant
    """When it was claimed."""


class GateToPass(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that a job has to pass. `kind` and `name`: the queue's own (""), a task's, a key's."""

    kind: GateKind
    name: str
    limit: Limit


class GateFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A gate as it is now."""

    gate: GateToPass
    held: int = 0
    """Running jobs behind it, counted up to its limit or `AHEAD_COUNTED`, whichever is more. 0 if it does not
    limit how many run."""
    holders: tuple[Holder, ...] = ()
    """Up to `HOLDERS_SHOWN` of them, the longest running of these first."""
    starts: tuple[tuple[Instant, int], ...] = ()
    """The log of its rate: (step, count), as `model.queues.gate` says."""

    @property
    def full(self) -> bool:
        """Whether as many run as may."""
        most = self.gate.limit.concurrency
        return most is not None and self.held >= most

    def opens_at(self, now: Instant) -> Instant | None:
        """When its rate allows a start again; None: it allows one now."""
        rate = self.gate.limit.rate
        if rate is None or room_of(rate, self.starts, now) > 0:
            return None
        return opens_at(rate, self.starts, now)


class ParentFacts(msgspec.Struct, frozen=True):
    """A job that another one waits for."""

    id: JobId
    state: JobState


class Pause(msgspec.Struct, frozen=True):
    """A pause of a queue, or of a task."""

    at: Instant
    by: str
    why: str


class QueueFacts(msgspec.Struct, frozen=True):
    """A queue as it is now."""

    options: QueueOptions
    """Those in force."""
    pause: Pause | None = None

    @classmethod
    def read(cls, options: bytes, paused_at: Instant | None, by: str, why: str) -> "QueueFacts":
        """From what is stored."""
        pause = None if paused_at is None else Pause(paused_at, by, why)
        return cls(read_stored(options).options, pause)


class Workers(msgspec.Struct, frozen=True):
    """Live members that may run a job."""

    take_queue: int = 0
    """How many take its queue."""
    know_task: int = 0
    """How many of those have its task, or do not say which they have."""
    queues: tuple[str, ...] = ()
    """If none takes its queue: those that live workers take."""


class WhyFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of why one job is where it is, at one moment."""

    now: Instant
    """The engine's clock at that moment."""
    job: JobRecord
    """As `inspect.list` shows it."""
    pause: Pause | None = None
    """Of its queue; only of jobs that have not started, as is everything below."""
    task_pause: Pause | None = None
    """Of its task."""
    gates: tuple[GateFacts, ...] = ()
    """Those that it has to pass (`gates_to_pass`)."""
    ahead: int = 0
    """Of a ready job: how many stand before it in its lane. Suspects hold back suspects only. Some may have
    expired, if no claim has met them yet."""
    better: int = 0
    """Of a ready job: how many are ready in its queue with a lower priority number."""
    parents: tuple[ParentFacts, ...] = ()
    """Of a blocked job: up to `PARENTS_SHOWN` of those that it still waits for and that are there, maybe as
    tombstones. Dead and cancelled ones come first, then the others, by id. Of more than `PARENTS_READ` the
    engine chooses which ones it reads."""
    workers: Workers = Workers()
    per_worker: Limit | None = None
    """Of its queue: each worker process counts it by itself, and no engine knows what is used of it."""


def held_bound(limit: Limit) -> int:
    """How far the holders of a gate are counted."""
    return max(limit.concurrency or 0, AHEAD_COUNTED)


def in_order(holders: Iterable[Holder]) -> tuple[Holder, ...]:
    """The longest running first."""
    return tuple(sorted(holders, key=lambda holder: (holder.since, holder.id)))


def has_started(job: JobRecord) -> bool:
    """Whether it runs or has ended: then nothing holds it back, and nothing else is read."""
    return job.state is JobState.RUNNING or job.state in FINAL


def worth_showing(parents: Iterable[ParentFacts]) -> tuple[ParentFacts, ...]:
    """Those to show of the parents that were read: dead and cancelled ones first, then by id."""
    died = (JobState.DEAD, JobState.CANCELLED)
    return tuple(sorted(parents, key=lambda parent: (parent.state not in died, parent.id))[:PARENTS_SHOWN])


def is_due(job: JobRecord, now: Instant) -> bool:
    """Whether neither a due time nor another job holds it back."""
    due = job.state is JobState.SCHEDULED and job.due_at is not None and job.due_at <= now
    return job.state is JobState.READY or due


def gates_to_pass(job: JobRecord, options: QueueOptions, now: Instant) -> list[GateToPass]:
    """The gates between a job and its start; none while something else than its queue holds it back."""
    if not is_due(job, now):
        return []
    gates = []
    if own := options.own:
        gates.append(GateToPass(kind="queue", name="", limit=own))
    if limit := options.limit_of_task(job.task):
        gates.append(GateToPass(kind="task", name=job.task, limit=limit))
    if limit := options.limit_of_key(job.key):
        gates.append(GateToPass(kind="key", name=job.key or "", limit=limit))
    return gates


def workers_for(job: JobRecord, members: Iterable[MemberRecord]) -> Workers:
    """The live members that may run a job."""
    live = live_workers(members)
    takers = [worker for worker in live if job.queue in worker.queues]
    if not takers:
        return Workers(queues=tuple(sorted({name for worker in live for name in worker.queues})))
    return Workers(len(takers), sum(knows_task(worker, job.task) is not False for worker in takers))
