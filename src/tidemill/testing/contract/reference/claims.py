"""Whether an answer to a claim is legal."""

from collections.abc import Callable

from tidemill.model.errors import ClaimantRetired, ClaimOutOfOrder, MemberGone, Refused
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Claim, ClaimedJob, ClaimRequest
from tidemill.model.queues.starts import start_rules
from tidemill.model.time import HOUR, Instant, Span
from tidemill.testing.contract.reference.gates import gates_for, is_pressed, log_of, openings, room_for
from tidemill.testing.contract.reference.records import ClaimantRecord, ReferenceJob
from tidemill.testing.contract.reference.store import ReferenceStore, Seen
from tidemill.testing.contract.reference.turns import ReferenceTurns

UNKNOWN = "unknown task"


class ReferenceClaims:
    """Judges claims, and adopts those that are legal."""

    def __init__(self, store: ReferenceStore) -> None:
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
        assert answer.now == now, f"the claim was made at {now}, not at {answer.now}"
        claimant = self._claimant(request, now)
        repeat = claimant.last_number == request.number
        if repeat:
            self._promote(request, now, seen, repeat=True)
            self._accept_repeat(request, answer)
        else:
            mark = self._store.positions
            self._promote(request, now, seen, repeat=False)
            self._accept_fresh(request, claimant, answer, now, lambda: self._store.adopt_order(mark, seen))
        self._clear_expired(request, now, seen)
        if not repeat:
            self._adopt_set_aside(request, seen)
        if not repeat and request.ids is None:
            self._check_none_passed_over(answer, now)
            self._check_set_aside(request, answer)

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
        named = [job.queue for id_ in request.ids or () if (job := self._store.known(id_))]
        for name in dict.fromkeys([want.queue for want in request.wants] + named):
            queue = self._store.queues.get(name)
            if queue is not None:
                optional = repeat or queue.paused_at is not None or request.ids is not None
                promote_due(self._store, name, now, seen, optional=optional)

    def _accept_repeat(self, request: ClaimRequest, answer: Claim) -> None:
        held = [job for job in self._store.held_by(request.claimant) if job.number == request.number]
        assert [(job.id, job.fence) for job in answer.jobs] == [(job.id, job.fence) for job in held], (
            "a repeated claim answered something else"
        )
        assert answer.wait == 0, f"after a repeat the claimant goes on at once, but wait is {answer.wait}"
        for shown, job in zip(answer.jobs, held, strict=True):
            self._check_shown(shown, job)
            rated = any(log_of(self._store.queues[gate.queue], gate) for gate in gates_for(self._store, job))
            assert shown.start_within == (0 if rated else None), "a repeat comes too late for a rate's start"

    def _accept_fresh(
        self,
        request: ClaimRequest,
        claimant: ClaimantRecord,
        answer: Claim,
        now: Instant,
        adopt_order: Callable[[], None],
    ) -> None:
        assert len(answer.jobs) <= request.most, f"asked for {request.most}, got {len(answer.jobs)}"
        turns = ReferenceTurns(self._store, request, claimant, now)
        for shown in answer.jobs:
            job = self._store.known(shown.id)
            if job is None and (job := self._handler_of_expired(shown.id, now)) is not None:
                adopt_order()  # whether it came before or after what was promoted is not fixed
                turns.add(job)
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
                self._check_wait(request, turns, answer, now)
        self._check_starts(answer, now)

    def _handler_of_expired(self, job_id: JobId, now: Instant) -> ReferenceJob | None:
        """A claim that makes an expired job dead may take the handler that this leaves."""
        for job in self._store.in_state(JobState.READY, JobState.SCHEDULED, JobState.BLOCKED):
            if job.new.on_dead is not None and job.expired(now) and self._store.next_handler(job) == job_id:
                self._store.expire(job, now)
        return self._store.known(job_id)

    def _take_by_id(self, request: ClaimRequest, turns: ReferenceTurns, job: ReferenceJob) -> None:
        assert request.ids is not None
        assert job.id in request.ids, "it was not asked for"
        passed = [known for id_ in request.ids if (known := self._store.known(id_))]
        ahead = turns.left_of(passed[: passed.index(job)])
        assert not ahead, f"{ahead[0].id.hex()} was asked for before it"
        turns.take_by_id(job)

    def _start(self, request: ClaimRequest, job: ReferenceJob, shown: ClaimedJob, now: Instant) -> None:
        assert shown.fence > self._store.top_fence, f"fence {shown.fence} after {self._store.top_fence}"
        assert shown.fence < 1 << 53, "a fence stays below 2**53"
        self._store.top_fence = job.fence = shown.fence
        job.claimant, job.number = request.claimant, request.number
        job.member = self._store.members[request.member].info.name
        job.claimed_at, job.started_at, job.reason = now, None, None

    def _check_shown(self, shown: ClaimedJob, job: ReferenceJob) -> None:
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
            "snoozes": job.snoozes,
            "suspect": job.suspect,
            "on_dead": new.on_dead,
            "schedule": new.schedule,
        }
        wrong = {
            name: (getattr(shown, name), value)
            for name, value in expected.items()
            if getattr(shown, name) != value
        }
        if job.id in self._store.handlers:  # `compare` checks what it carries
            wrong.pop("body", None)
        assert not wrong, f"a claimed job shows (it, right): {wrong}"
        options = self._store.queues[job.queue].options
        if gates_for(self._store, job) or options.fair_by is not None:
            assert shown.limited, "a claimed job stands under a limit and does not show it"
        elif not (options.per_task or options.limits):  # beside a limited task or key, engines may be careful
            assert not shown.limited, "a claimed job shows a limit and stands under none"

    def _check_starts(self, answer: Claim, now: Instant) -> None:
        """After all permits of the claim are logged. With the delay if a gate of the job is pressed; without
        if no gate of its queue is. In between an engine may be careful."""
        for shown in answer.jobs:
            job = self._store.known(shown.id)
            assert job is not None
            own = [
                gate for gate in gates_for(self._store, job) if log_of(self._store.queues[gate.queue], gate)
            ]
            rules = start_rules(self._store.queues[job.queue].options)
            legal: set[tuple[Span, Span | None]] = {(0, None)}
            if own:
                assert rules is not None
                late, soon = (rules.delay, rules.within), (0, rules.delay + rules.within)
                everywhere = self._store.queues[job.queue].logs
                legal = {late, soon}
                if any(is_pressed(self._store, gate, now).sure for gate in own):
                    legal = {late}
                elif not any(is_pressed(self._store, gate, now).maybe for gate in everywhere):
                    legal = {soon}
            shows = (shown.start_in, shown.start_within)
            assert shows in legal, f"{shown.id.hex()} starts (in, within) {shows}, which should be in {legal}"

    def _check_nothing_left(self, request: ClaimRequest, turns: ReferenceTurns) -> None:
        if request.ids is None:
            left = turns.left_behind()
        else:
            left = turns.left_of([known for id_ in request.ids if (known := self._store.known(id_))])
        assert not left, f"{left[0].id.hex()} in {left[0].queue!r} could have been taken and was left"

    def _check_wait(self, request: ClaimRequest, turns: ReferenceTurns, answer: Claim, now: Instant) -> None:
        """`wait` is never later than the moment at which time alone makes a job claimable. It may be
        earlier: a rate that opens before an empty lane costs one read in vain."""
        store = self._store
        open_queues = [want.queue for want in request.wants if is_open(store, want.queue)]
        waiting = [
            job for job in store.in_state(JobState.READY, JobState.SCHEDULED) if job.queue in open_queues
        ]
        moments = set[Instant]()
        for job in waiting:
            due = now if job.state is JobState.READY else job.due_at or now
            when = max([due, *openings(store, job, now)])
            claimable = not job.expired(when) and not job.suspect and room_for(store, job, when).sure > 0
            claimable = claimable and job.new.task not in store.passed_over(request.unknown)
            if when > now and claimable and turns.wants_more(job.queue):
                moments.add(when - now)
        if moments:
            assert answer.wait is not None, f"something comes in {min(moments)}, but wait is None"
            assert answer.wait <= min(moments), (
                f"something comes in {min(moments)}, but wait is {answer.wait}"
            )
        if answer.wait is not None:
            assert answer.wait > 0, "a wait of 0 would make a busy loop"
            scheduled = any(job.state is JobState.SCHEDULED for job in waiting)
            rated = any(store.queues[queue].logs for queue in open_queues)
            assert scheduled or rated, f"nothing comes by time alone, but wait is {answer.wait}"

    def _clear_expired(self, request: ClaimRequest, now: Instant, seen: Seen) -> None:
        """A claim makes the expired jobs dead that it meets; how far it scans is its own choice."""
        wanted = {want.queue for want in request.wants}
        states = (JobState.READY, JobState.SCHEDULED, JobState.BLOCKED)
        for job in self._store.in_state(*states):
            shown = seen.get(job.id)
            met = job.queue in wanted or (request.ids is not None and job.id in request.ids)
            if met and job.expired(now) and shown is not None and shown.state is JobState.DEAD:
                self._store.expire(job, now)

    def _adopt_set_aside(self, request: ClaimRequest, seen: Seen) -> None:
        """What a claim has set aside because its claimant does not know the task shows the reason. Which
        jobs it meets is its own choice."""
        wanted = {want.queue for want in request.wants} if request.ids is None else set()
        for job in self._store.in_state(JobState.READY):
            shown = seen.get(job.id)
            met = is_open(self._store, job.queue) and (
                job.queue in wanted or (request.ids is not None and job.id in request.ids)
            )
            if met and job.new.task in request.unknown and shown is not None and shown.reason == UNKNOWN:
                job.reason = UNKNOWN

    def _check_set_aside(self, request: ClaimRequest, answer: Claim) -> None:
        """A job of a task that the claimant does not know stands aside if it stood before one that came."""
        store = self._store
        taken = [store.jobs[shown.id] for shown in answer.jobs]
        for job in store.in_state(JobState.READY):
            if job.new.task in request.unknown and job.new.task not in store.once_paused and not job.suspect:
                behind = [each for each in taken if each.position > job.position]
                lane = [each for each in behind if _lane(store, each) == _lane(store, job)]
                assert not lane or job.reason == UNKNOWN, f"{job.id.hex()} was met, and not set aside"

    def _check_none_passed_over(self, answer: Claim, now: Instant) -> None:
        """A job that stood before one that was taken, and had expired, is dead now."""
        store = self._store
        taken = [store.jobs[shown.id] for shown in answer.jobs]
        for job in store.in_state(JobState.READY):
            lane = [
                other
                for other in taken
                if other.position > job.position and _lane(store, other) == _lane(store, job)
            ]
            assert not lane or not job.expired(now) or job.suspect, (
                f"{job.id.hex()} has expired, was met, and is not dead"
            )


def is_open(store: ReferenceStore, queue: str) -> bool:
    """Whether a queue is there and not paused."""
    return queue in store.queues and store.queues[queue].paused_at is None


def _lane(store: ReferenceStore, job: ReferenceJob) -> tuple[str, int, str]:
    return job.queue, job.new.priority, store.group(job)


def promote_due(
    store: ReferenceStore, queue: str, now: Instant, seen: Seen, *, optional: bool
) -> list[ReferenceJob]:
    """Move the due jobs of a queue to ready; those that have expired, or all with `optional`, only if
    the engine did."""
    due = [job for job in store.in_state(JobState.SCHEDULED) if job.queue == queue and job.due(now)]
    moved = []
    for job in sorted(due, key=lambda job: (job.due_at or 0, job.position)):
        shown = seen.get(job.id)
        state = shown.state if shown else None
        left = state is JobState.SCHEDULED if optional else False
        if left or (job.expired(now) and state is not JobState.READY):
            continue
        store.become_ready(job, now)
        moved.append(job)
    return moved
