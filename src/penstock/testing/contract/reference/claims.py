"""Whether an answer to a claim is legal."""

from penstock.model.errors import ClaimantRetired, ClaimOutOfOrder, MemberGone, Refused
from penstock.model.job import Claim, ClaimedJob, ClaimRequest, JobState
from penstock.model.time import HOUR, Instant
from penstock.testing.contract.reference.gates import gates_for, openings, room_for
from penstock.testing.contract.reference.records import ClaimantRecord, JobRecord
from penstock.testing.contract.reference.store import Seen, Store
from penstock.testing.contract.reference.turns import Turns


class Claims:
    """Judges claims, and adopts those that are legal."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def accept_refusal(self, request: ClaimRequest, refused: Refused, now: Instant) -> None:
        """`AssertionError` unless the claim had to be refused, and for this reason."""
        sure, possible = self._reasons(request, now)
        assert type(refused) in sure | possible, f"refused without reason: {refused!r}"

    def accept(self, request: ClaimRequest, answer: Claim, now: Instant, seen: Seen) -> None:
        """`AssertionError` with the reason unless this answer is legal; otherwise it is adopted.

        `seen` is what the engine shows after the call: it tells which due jobs were promoted and
        which expired ones were cleared away, where that is the engine's choice."""
        sure, _ = self._reasons(request, now)
        assert not sure, f"should have been refused: {sorted(reason.__name__ for reason in sure)}"
        claimant = self._claimant(request, now)
        assert len(answer.jobs) <= request.most, f"asked for {request.most}, got {len(answer.jobs)}"
        if claimant.last_number == request.number:
            self._promote(request, now, seen, repeat=True)
            self._accept_repeat(request, answer)
        else:
            self._promote(request, now, seen, repeat=False)
            self._accept_fresh(request, claimant, answer, now)
        self._clear_expired(request, now, seen)
        self._check_none_passed_over(answer, now)

    def _reasons(self, request: ClaimRequest, now: Instant) -> tuple[set[type[Refused]], set[type[Refused]]]:
        """Why this claim must be refused, and why it may be."""
        sure, possible = set[type[Refused]](), set[type[Refused]]()
        claimant = self._store.claimants.get(request.claimant)
        if request.member not in self._store.members:
            sure.add(MemberGone)
        if claimant is not None:
            forgotten = claimant.retired_at is not None and now - claimant.retired_at >= HOUR
            if claimant.maybe_retired or forgotten:
                possible |= {ClaimantRetired, ClaimOutOfOrder}
            elif claimant.retired_at is not None:
                sure.add(ClaimantRetired)
            if request.number < claimant.last_number:
                (possible if forgotten else sure).add(ClaimOutOfOrder)
        return sure, possible

    def _claimant(self, request: ClaimRequest, now: Instant) -> ClaimantRecord:
        """The claimant; one that was forgotten begins anew."""
        known = self._store.claimants.get(request.claimant)
        if known is None or known.retired_at is not None:
            known = ClaimantRecord(request.member)
            self._store.claimants[request.claimant] = known
        known.maybe_retired = False
        return known

    def _promote(self, request: ClaimRequest, now: Instant, seen: Seen, *, repeat: bool) -> None:
        """Due jobs of the wanted queues move to ready, in the order of due time and former seq."""
        asked_for = [job.queue for id_ in request.ids or () if (job := self._store.known(id_))]
        for name in dict.fromkeys([want.queue for want in request.wants] + asked_for):
            queue = self._store.queues.get(name)
            if queue is not None:
                optional = repeat or queue.paused_at is not None or request.ids is not None
                promote_due(self._store, name, now, seen, optional=optional)

    def _accept_repeat(self, request: ClaimRequest, answer: Claim) -> None:
        held = [job for job in self._store.held_by(request.claimant) if job.number == request.number]
        assert [(job.id, job.fence) for job in answer.jobs] == [(job.id, job.fence) for job in held], (
            "a repeated claim answered something else"
        )
        for shown, job in zip(answer.jobs, held, strict=True):
            self._check_shown(shown, job)

    def _accept_fresh(
        self, request: ClaimRequest, claimant: ClaimantRecord, answer: Claim, now: Instant
    ) -> None:
        turns = Turns(self._store, request, claimant, now)
        for shown in answer.jobs:
            job = self._store.known(shown.id)
            assert job is not None, f"{shown.id.hex()} was taken, but does not exist"
            try:
                turns.take(job) if request.ids is None else self._take_by_id(request, turns, job)
            except AssertionError as error:
                raise AssertionError(f"{shown.id.hex()} was taken, but {error}") from error
            self._start(request, job, shown, now)
            self._check_shown(shown, job)
        if answer.jobs:
            claimant.member = request.member
            claimant.last_number = request.number
        if len(answer.jobs) < request.most:
            self._check_nothing_left(request, turns)
            if request.ids is None:
                self._check_wait(turns, answer, now)

    def _take_by_id(self, request: ClaimRequest, turns: Turns, job: JobRecord) -> None:
        assert request.ids is not None
        assert job.id in request.ids, "it was not asked for"
        passed = [known for id_ in request.ids if (known := self._store.known(id_))]
        ahead = turns.left_of(passed[: passed.index(job)])
        assert not ahead, f"{ahead[0].id.hex()} was asked for before it"
        turns.take_by_id(job)

    def _start(self, request: ClaimRequest, job: JobRecord, shown: ClaimedJob, now: Instant) -> None:
        assert shown.fence > self._store.top_fence, f"fence {shown.fence} after {self._store.top_fence}"
        assert shown.fence < 1 << 53, "a fence stays below 2**53"
        self._store.top_fence = job.fence = shown.fence
        job.claimant, job.number = request.claimant, request.number
        job.member = self._store.members[request.member].info.name
        job.claimed_at, job.started_at = now, None

    def _check_shown(self, shown: ClaimedJob, job: JobRecord) -> None:
        new = job.new
        expected = {
            "task": new.task,
            "queue": new.queue,
            "priority": new.priority,
            "attempt": job.attempts + 1,
            "max_attempts": new.attempts,
            "codec": new.codec,
            "body": new.body,
            "headers": new.headers,
            "key": new.key,
            "timeout": new.timeout,
            "retry": new.retry,
            "created_at": job.created_at,
            "crashes": job.crashes,
            "suspect": job.suspect,
            "limited": bool(gates_for(self._store, job))
            or self._store.queues[job.queue].options.fair_by is not None,
            "on_dead": new.on_dead,
            "schedule": new.schedule,
        }
        wrong = {
            name: (getattr(shown, name), value)
            for name, value in expected.items()
            if getattr(shown, name) != value
        }
        assert not wrong, f"a claimed job shows (it, right): {wrong}"

    def _check_nothing_left(self, request: ClaimRequest, turns: Turns) -> None:
        if request.ids is None:
            left = turns.left_behind()
        else:
            left = turns.left_of([known for id_ in request.ids if (known := self._store.known(id_))])
        assert not left, f"{left[0].id.hex()} in {left[0].queue!r} could have been taken and was left"

    def _check_wait(self, turns: Turns, answer: Claim, now: Instant) -> None:
        """`wait` is not later than the moment at which time alone makes a job claimable."""
        moments, chances = set[Instant](), set[Instant]()
        for job in self._store.in_state(JobState.READY, JobState.SCHEDULED):
            queue = self._store.queues[job.queue]
            if not turns.wants_more(job.queue) or queue.paused_at is not None:
                continue
            due = now if job.state is JobState.READY else job.due_at or now
            when = max([due, *openings(self._store, job, now)])
            chances |= {due, *openings(self._store, job, now)}
            if not job.expired(when) and room_for(self._store, job, when).sure > 0 and not job.suspect:
                moments.add(when)
        if not {moment for moment in chances if moment > now}:
            assert answer.wait is None, f"nothing comes by time alone, but wait is {answer.wait}"
        elif {moment for moment in moments if moment > now}:
            earliest = min(moment for moment in moments if moment > now) - now
            assert answer.wait is not None, f"something comes in {earliest}, but wait is None"
            assert 0 < answer.wait <= earliest, f"something comes in {earliest}, but wait is {answer.wait}"

    def _clear_expired(self, request: ClaimRequest, now: Instant, seen: Seen) -> None:
        """A claim makes the expired jobs dead that it meets; how far it looks is its own choice."""
        wanted = {want.queue for want in request.wants}
        states = (JobState.READY, JobState.SCHEDULED, JobState.BLOCKED)
        for job in self._store.in_state(*states):
            shown = seen.get(job.id)
            met = job.queue in wanted or (request.ids is not None and job.id in request.ids)
            if met and job.expired(now) and shown is not None and shown.state is JobState.DEAD:
                self._store.expire(job, now)

    def _check_none_passed_over(self, answer: Claim, now: Instant) -> None:
        """Whoever stood before a job that was taken, and had expired, is dead now."""
        store = self._store
        taken = [store.jobs[shown.id] for shown in answer.jobs]
        for job in store.in_state(JobState.READY):
            lane = [
                other
                for other in taken
                if other.place > job.place and _lane(store, other) == _lane(store, job)
            ]
            assert not job.expired(now) or not lane, f"{job.id.hex()} has expired, was met, and is not dead"


def _lane(store: Store, job: JobRecord) -> tuple[str, int, str]:
    return job.queue, job.new.priority, store.group(job)


def promote_due(store: Store, queue: str, now: Instant, seen: Seen, *, optional: bool) -> list[JobRecord]:
    """Move the due jobs of a queue to ready; those that have expired, or all with `optional`, only if
    the engine did."""
    due = [job for job in store.in_state(JobState.SCHEDULED) if job.queue == queue and job.due(now)]
    moved = []
    for job in sorted(due, key=lambda job: (job.due_at or 0, job.place)):
        shown = seen.get(job.id)
        state = shown.state if shown else None
        left = state is JobState.SCHEDULED if optional else False
        if left or (job.expired(now) and state is not JobState.READY):
            continue
        store.become_ready(job, now)
        moved.append(job)
    return moved
