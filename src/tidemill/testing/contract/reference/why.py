"""Why jobs are where they are: what an engine's facts must be, and what a claim must do by them."""

from collections.abc import Iterator, Mapping, Sequence

from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobRecord, JobState
from tidemill.model.jobs.run import Claim, ClaimRequest
from tidemill.model.member import Health, health
from tidemill.model.queues.gate import room_of
from tidemill.model.time import Instant
from tidemill.model.why.facts import HOLDERS_SHOWN, PARENTS_READ, PARENTS_SHOWN, GateFacts, WhyFacts, is_due
from tidemill.model.why.reasons import STOPS, reasons_of
from tidemill.testing.contract.reference.gates import gates_for, log_of
from tidemill.testing.contract.reference.queues import concurrency_of
from tidemill.testing.contract.reference.records import Gate, ReferenceJob
from tidemill.testing.contract.reference.store import ReferenceStore

DIED = (JobState.DEAD, JobState.CANCELLED)


def wrong_facts(
    store: ReferenceStore, found: Sequence[WhyFacts | None], shown: Mapping[JobId, JobRecord | None]
) -> list[str]:
    """Every fact that is wrong, in words. `shown`: the waiting jobs as the engine has them, with the lane in
    which each stands."""
    return [
        f"{facts.job.id.hex()}: {line}"
        for facts in found
        if facts is not None and (job := store.known(facts.job.id)) is not None
        for line in _wrong(store, job, facts, shown)
    ]


def _wrong(
    store: ReferenceStore, job: ReferenceJob, facts: WhyFacts, shown: Mapping[JobId, JobRecord | None]
) -> Iterator[str]:
    queue, waits = (
        store.queues[job.queue],
        job.state in (JobState.BLOCKED, JobState.SCHEDULED, JobState.READY),
    )
    ready = job.state is JobState.READY
    paused = (queue.paused_at, queue.paused_by, queue.paused_why) if queue.paused_at and waits else None
    order = _order(facts.job, shown) if ready else (0, 0)
    if any(_may_be_aside(store, each) for each in shown.values() if each and each.queue == job.queue):
        order = (facts.ahead, facts.better)  # what stands aside is not counted, and a record does not show it
    entry = store.tasks.get(job.new.task)
    task_paused = (entry.paused_at, entry.paused_by, entry.paused_why) if entry and entry.paused_at else None
    right = {
        "state": (facts.job.state, job.state),
        "pause": (facts.pause and (facts.pause.at, facts.pause.by, facts.pause.why), paused),
        "task_pause": (
            facts.task_pause and (facts.task_pause.at, facts.task_pause.by, facts.task_pause.why),
            task_paused if waits else None,
        ),
        "parents": (
            [(parent.id, parent.state) for parent in facts.parents],
            _parents(store, job) if job.state is JobState.BLOCKED else [],
        ),
        "ahead and better": ((facts.ahead, facts.better), order),
        "workers": (facts.workers.take_queue, _workers(store, job.queue, facts.now) if waits else 0),
    }
    for name, (said, should) in right.items():
        if said != should:
            yield f"{name} is {said!r}, should be {should!r}"
    gates = gates_for(store, job) if is_due(facts.job, facts.now) else []
    if [(each.gate.kind, each.gate.name) for each in facts.gates] != [
        (gate.kind, gate.name) for gate in gates
    ]:
        yield f"gates are {facts.gates}, should be {gates}"
        return
    for each, gate in zip(facts.gates, gates, strict=True):
        yield from _wrong_gate(store, each, gate, facts.now)


def _wrong_gate(store: ReferenceStore, facts: GateFacts, gate: Gate, now: Instant) -> Iterator[str]:
    queue = store.queues[gate.queue]
    concurrency, log = concurrency_of(queue, gate), log_of(queue, gate)
    if facts.gate.limit.concurrency != concurrency:
        yield f"{gate}: the limit is {facts.gate.limit.concurrency}, should be {concurrency}"
    if concurrency is not None:
        running = [job for job in store.in_state(JobState.RUNNING) if gate in gates_for(store, job)]
        holders = {(job.id, job.member, job.claimed_at) for job in running}
        said = {(holder.id, holder.member, holder.since) for holder in facts.holders}
        if facts.held != len(holders) or not said <= holders or len(said) != min(len(holders), HOLDERS_SHOWN):
            yield f"{gate}: held by {facts.held}, {said}, should be {holders}"
    rate = facts.gate.limit.rate
    if (rate is None) is not (log is None):
        yield f"{gate}: the rate is {rate}"
    elif rate is not None and log is not None:
        sure, most = room_of(log.rate, log.before + log.since, now), room_of(log.rate, log.since, now)
        left = room_of(rate, facts.starts, now)
        if not sure <= left <= most:
            yield f"{gate}: {facts.starts} leave {left}, should be {sure} to {most}"


def _parents(store: ReferenceStore, job: ReferenceJob) -> list[tuple[JobId, JobState | None]]:
    there = [parent for each in job.waits if (parent := store.jobs.get(each)) is not None]
    assert len(there) <= PARENTS_READ
    there.sort(key=lambda parent: (parent.state not in DIED, parent.id))
    return [(parent.id, parent.state) for parent in there[:PARENTS_SHOWN]]


def _order(job: JobRecord, shown: Mapping[JobId, JobRecord | None]) -> tuple[int, int]:
    """How many stand before it in its lane, and how many have a better priority."""
    ready = [each for each in shown.values() if each is not None and each.state is JobState.READY]
    ready = [each for each in ready if each.queue == job.queue]
    lane = [each for each in ready if (each.priority, each.group) == (job.priority, job.group)]
    ahead = [each for each in lane if each.seq < job.seq and (job.suspect or not each.suspect)]
    return len(ahead), sum(each.priority < job.priority for each in ready)


def _may_be_aside(store: ReferenceStore, job: JobRecord) -> bool:
    return job.task in store.once_paused or job.reason == "unknown task"


def _workers(store: ReferenceStore, queue: str, now: Instant) -> int:
    return sum(
        queue in record.info.queues and health(record.info, record.heartbeat_at, now) is not Health.GONE
        for record in store.members.values()
    )


def disagreements(found: Sequence[WhyFacts | None], request: ClaimRequest, answer: Claim) -> list[str]:
    """Where a claim that was made at the same moment, and was no repeat, did otherwise than the facts say: it
    takes nothing that something stops; of the jobs that it names, it takes the first that nothing stops."""
    taken = {job.id for job in answer.jobs}
    free = {facts.job.id for facts in found if facts and not _stopped(facts)}
    known = {facts.job.id: facts for facts in found if facts}
    wrong = [
        f"{job_id.hex()} was taken, but {[reason.sentence for reason in reasons_of(facts)]}"
        for job_id, facts in known.items()
        if job_id in taken and job_id not in free
    ]
    for job_id in request.ids or ():
        facts = known.get(job_id)
        if facts is None or not request.most:
            break
        knows = facts.job.task not in request.unknown
        if job_id in free and knows and (request.suspects or not facts.job.suspect):
            wrong += [] if job_id in taken else [f"{job_id.hex()} was not taken, but nothing stops it"]
            break
    return wrong


def _stopped(facts: WhyFacts) -> bool:
    started = facts.job.state not in (JobState.BLOCKED, JobState.SCHEDULED, JobState.READY)
    return started or any(reason.kind in STOPS for reason in reasons_of(facts))
