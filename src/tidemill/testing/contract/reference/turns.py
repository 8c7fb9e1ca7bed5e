"""Whose turn it was: an answer is followed job by job, and each must be one that could come next.

Within one claim nothing becomes claimable (except the handlers of jobs that it finds expired, which it may
take or leave): gates only fill up, and the allowance of suspects only shrinks. So a queue or lane may be
passed over exactly when it has nothing to give at that point.
"""

from collections.abc import Sequence

from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import ClaimRequest
from tidemill.model.queues.lane import turn_order, weight_of
from tidemill.model.time import Instant
from tidemill.testing.contract.reference.gates import log_start, room_for
from tidemill.testing.contract.reference.records import ClaimantRecord, Position, ReferenceJob
from tidemill.testing.contract.reference.store import ReferenceStore


class ReferenceTurns:
    """One claim on its way."""

    def __init__(
        self, store: ReferenceStore, request: ClaimRequest, claimant: ClaimantRecord, now: Instant
    ) -> None:
        self._store = store
        self._now = now
        self._claimant = claimant
        self._suspects = request.suspects
        self._passed = store.passed_over(request.unknown)
        self._left = {want.queue: request.most if want.most is None else want.most for want in request.wants}
        self._turn: dict[tuple[str, int], Position] = {}
        self._last_queues = claimant.last_queues
        self._waiting = [job for job in store.in_state(JobState.READY) if self._open(job)]

    def take(self, job: ReferenceJob) -> None:
        """This job comes next in the answer; `AssertionError` if another had to."""
        self._check_takable(job)
        self._check_queue(job)
        self._check_priority(job)
        self._check_lane(job)
        self._last_queues = self._claimant.last_queues = (job.queue,)
        self._left[job.queue] -= 1
        self._remove(job)

    def take_by_id(self, job: ReferenceJob) -> None:
        """The same for a claim of certain jobs, where no turns are taken."""
        assert job in self._waiting, (
            "the job was not ready, in a paused queue, of a task passed over, or expired"
        )
        assert not job.suspect or self._suspects > 0, "more suspects than were allowed"
        assert room_for(self._store, job, self._now).most > 0, "a gate of the job was full"
        self._claimant.last_queues = (*self._last_queues, job.queue)
        self._remove(job)

    def add(self, job: ReferenceJob) -> None:
        """It became claimable on the way."""
        if self._open(job):
            self._waiting.append(job)
        self._waiting.sort(key=lambda waiting: waiting.position)

    def must_give(self, jobs: Sequence[ReferenceJob]) -> list[ReferenceJob]:
        """Those that can be taken now by every reading of the contract."""
        return [job for job in jobs if self._allowed(job) and room_for(self._store, job, self._now).sure > 0]

    def left_behind(self) -> list[ReferenceJob]:
        """What could still be taken from the wanted queues."""
        return self.must_give([job for job in self._waiting if self._left.get(job.queue, 0) > 0])

    def left_of(self, jobs: Sequence[ReferenceJob]) -> list[ReferenceJob]:
        """What could still be taken of these, whatever their queue."""
        return self.must_give([job for job in jobs if job in self._waiting])

    def wants_more(self, queue: str) -> bool:
        """Whether the queue is wanted and its own bound is not reached."""
        return self._left.get(queue, 0) > 0

    def _open(self, job: ReferenceJob) -> bool:
        paused = self._store.queues[job.queue].paused_at is not None
        return not paused and not job.expired(self._now) and job.new.task not in self._passed

    def _allowed(self, job: ReferenceJob) -> bool:
        return not job.suspect or self._suspects > 0

    def _check_takable(self, job: ReferenceJob) -> None:
        assert job.queue in self._left, f"queue {job.queue!r} was not wanted"
        assert job.state is JobState.READY, f"it was {job.state}, not ready"
        assert not job.expired(self._now), "it had expired"
        assert job.new.task not in self._passed, "its task is unknown to the claimant, or paused"
        assert job in self._waiting, f"queue {job.queue!r} is paused"
        assert self._left[job.queue] > 0, f"more than asked from queue {job.queue!r}"
        assert self._allowed(job), "more suspects than were allowed"
        assert room_for(self._store, job, self._now).most > 0, "one of its gates was full"
        lane = [
            other
            for other in self._waiting
            if other.queue == job.queue
            and other.new.priority == job.new.priority
            and self._store.group(other) == self._store.group(job)
            and self._allowed(other)
        ]
        assert lane[0] is job, f"{lane[0].id.hex()} stood before it in its lane"

    def _check_queue(self, job: ReferenceJob) -> None:
        giving = {other.queue for other in self.left_behind()} | {job.queue}
        legal = {turn_order(sorted(giving), last)[0] for last in self._last_queues}
        assert job.queue in legal, f"it was the turn of queue {sorted(legal)}, not of {job.queue!r}"

    def _check_priority(self, job: ReferenceJob) -> None:
        ahead = [
            other
            for other in self.must_give(self._waiting)
            if other.queue == job.queue and other.new.priority < job.new.priority
        ]
        assert not ahead, f"priority {ahead[0].new.priority} goes before {job.new.priority}"

    def _check_lane(self, job: ReferenceJob) -> None:
        key = (job.queue, job.new.priority)
        group = self._store.group(job)
        open_groups = {
            self._store.group(other)
            for other in self.must_give(self._waiting)
            if (other.queue, other.new.priority) == key
        } | {group}
        before = self._turn.get(key)
        starts = [before] if before else self._stops(job)
        legal = {self._next(job.queue, open_groups, start) for start in starts}
        assert group in legal, f"it was the turn of lane {sorted(legal)}, not of {group!r}"
        same_turn = (
            before is not None and before.group == group and before.given < self._weight(job.queue, group)
        )
        given = before.given + 1 if before and same_turn else 1
        self._turn[key] = Position(group, given)
        options = self._store.queues[job.queue].options
        if not options.keyed and not any(options.per_task.values()):
            return  # one lane a priority: there are no turns to remember
        for scope in ((job.queue, str(key[1])), (job.queue,), ()):
            self._claimant.positions[scope] = Position(group, given)

    def _stops(self, job: ReferenceJob) -> list[Position | None]:
        """Where the claimant may have stopped before: after the lane it served last, or inside its turn."""
        stops: list[Position | None] = []
        for scope in ((job.queue, str(job.new.priority)), (job.queue,), ()):
            stop = self._claimant.positions.get(scope)
            stops += [None] if stop is None else [stop, Position(stop.group, 1 << 30)]
            if stop is not None and scope == (job.queue, str(job.new.priority)):
                break
        return stops

    def _next(self, queue: str, groups: set[str], after: Position | None) -> str:
        """The lane whose turn it is."""
        if after and after.group in groups and after.given < self._weight(queue, after.group):
            return after.group
        return turn_order(sorted(groups), after.group if after else None)[0]

    def _weight(self, queue: str, group: str) -> int:
        return weight_of(self._store.queues[queue].options, group)

    def _remove(self, job: ReferenceJob) -> None:
        """Taken: the gates feel it at once."""
        self._waiting.remove(job)
        self._suspects -= job.suspect
        log_start(self._store, job, self._now)
        self._store.move(job, JobState.RUNNING)
