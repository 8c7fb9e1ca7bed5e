"""The reference refuses illegal claims: answers made by hand, each wrong in one respect."""

from typing import Any

import pytest

from tidemill.model.errors import ClaimantRetired, ClaimOutOfOrder, MemberGone, Refused
from tidemill.model.ids import JobId, new_id
from tidemill.model.jobs.job import JobRecord, JobState, NewJob
from tidemill.model.jobs.run import Claim, ClaimedJob, ClaimRequest, Settlement, Stopped, Want
from tidemill.model.member import MemberInfo
from tidemill.model.queues.gate import counts_until, step_at
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.model.time import HOUR, MINUTE, SECOND, Instant, Span
from tidemill.testing.contract.reference import Reference, gates

NOW: Instant = 1_800_000_000 * SECOND


class Scene:
    """A reference with one member, and answers made by hand."""

    def __init__(self, options: QueueOptions | None = None) -> None:
        self.reference = Reference()
        self.member = MemberInfo(id=new_id(), name="host:1")
        self.claimant = new_id()
        self.fence = 0
        self.number = 0
        self.now = NOW
        self.reference.members.heartbeat(self.member, [], now=NOW)
        if options is not None:
            self.reference.queues.configure("q", options, now=NOW)

    def jobs(self, count: int, **options: Any) -> list[NewJob]:
        jobs = [NewJob(**{"id": new_id(), "task": "t", "queue": "q", **options}) for _ in range(count)]
        self.reference.jobs.enqueue(jobs, now=self.now)
        return jobs

    def request(self, *queues: str, most: int = 10, **options: Any) -> ClaimRequest:
        number = options.pop("number", self.number + 1)
        wants = tuple(Want(queue, options.get("each")) for queue in queues or ("q",))
        options.pop("each", None)
        return ClaimRequest(
            member=self.member.id, claimant=self.claimant, number=number, wants=wants, most=most, **options
        )

    def shown(self, job_id: JobId, **instead: Any) -> ClaimedJob:
        record = self.reference.store.jobs[job_id]
        self.fence += 1
        limited = bool(gates.gates_for(self.reference.store, record))
        fields: dict[str, Any] = {
            name: getattr(record.new, name)
            for name in ("task", "queue", "priority", "codec", "body", "headers", "key", "timeout", "retry")
        }
        fields |= {"id": job_id, "fence": self.fence, "seq": 0, "attempt": record.attempts + 1}
        fields |= {"max_attempts": record.new.attempts, "created_at": record.created_at, "ready_at": 0}
        fields |= {"crashes": record.crashes, "suspect": record.suspect, "on_dead": None, "schedule": None}
        fields |= {"snoozes": record.snoozes}
        fields |= {"limited": limited or self.reference.store.queues[record.queue].options.keyed}
        return ClaimedJob(**fields | instead)

    def answer(
        self, request: ClaimRequest, *jobs: NewJob, wait: Span | None = None, **instead: Any
    ) -> list[ClaimedJob]:
        """This answer is judged, and adopted if it is legal."""
        shown = [self.shown(job.id, **instead) for job in jobs]
        seen: dict[JobId, JobRecord | None] = {}
        self.reference.claims.accept(request, Claim(shown, wait, self.now), self.now, seen)
        self.number = max(self.number, request.number)
        return shown


def test_a_legal_claim_is_adopted() -> None:
    scene = Scene()
    jobs = scene.jobs(3)
    scene.answer(scene.request(most=2), *jobs[:2])
    scene.answer(scene.request(), jobs[2])
    running = scene.reference.store.in_state(JobState.RUNNING)
    assert [job.id for job in running] == [job.id for job in jobs]


def test_a_lane_is_a_line() -> None:
    scene = Scene()
    first, second = scene.jobs(2)
    with pytest.raises(AssertionError, match="stood before it"):
        scene.answer(scene.request(most=1), second)
    with pytest.raises(AssertionError, match="stood before it"):
        scene.answer(scene.request(), second, first)


def test_what_can_be_taken_is_taken() -> None:
    scene = Scene()
    first, _ = scene.jobs(2)
    with pytest.raises(AssertionError, match="was left"):
        scene.answer(scene.request(), first)


def test_no_more_than_asked_is_taken() -> None:
    scene = Scene()
    jobs = scene.jobs(3)
    with pytest.raises(AssertionError, match="asked for 2"):
        scene.answer(scene.request(most=2), *jobs)
    with pytest.raises(AssertionError, match="more than asked"):
        scene.answer(scene.request(each=2), *jobs)


def test_priority_is_strict() -> None:
    scene = Scene()
    (late,) = scene.jobs(1, priority=6)
    (early,) = scene.jobs(1, priority=1)
    with pytest.raises(AssertionError, match="priority 1 goes before 6"):
        scene.answer(scene.request(), late, early)


def test_queues_take_turns() -> None:
    scene = Scene()
    first, second = scene.jobs(2)
    (other,) = scene.jobs(1, queue="p")
    with pytest.raises(AssertionError, match=r"turn of queue \['p'\]"):
        scene.answer(scene.request("q", "p"), first, second, other)
    scene = Scene()
    first, second = scene.jobs(2)
    (other,) = scene.jobs(1, queue="p")
    scene.answer(scene.request("q", "p"), other, first, second)


def test_lanes_take_turns_by_weight() -> None:
    options = QueueOptions(fair_by="key", weights={"a": 2})

    def fill() -> tuple[Scene, list[NewJob], list[NewJob]]:
        scene = Scene(options)
        return scene, scene.jobs(3, key="a"), scene.jobs(2, key="b")

    scene, a, b = fill()
    scene.answer(scene.request(), a[0], a[1], b[0], a[2], b[1])
    for wrong in ("aaabb", "abaab", "baaab"):
        scene, a, b = fill()
        left = {"a": iter(a), "b": iter(b)}
        with pytest.raises(AssertionError, match="turn of lane"):
            scene.answer(scene.request(), *(next(left[letter]) for letter in wrong))


def test_turns_go_on_where_the_claimant_stopped() -> None:
    scene = Scene(QueueOptions(fair_by="key"))
    a, _, c = scene.jobs(2, key="a"), scene.jobs(2, key="b"), scene.jobs(2, key="c")
    scene.answer(scene.request(most=1), a[0])
    for wrong in (a[1], c[0]):
        with pytest.raises(AssertionError, match=r"turn of lane \['b'\]"):
            scene.answer(scene.request(most=1), wrong)


@pytest.mark.parametrize(
    ("options", "full"),
    [
        (QueueOptions(concurrency=2), "t"),
        (QueueOptions(rate=Rate(2, per=60)), "t"),
        (QueueOptions(per_task={"t": Limit(concurrency=2)}), "t"),
        (QueueOptions(per_key=Limit(rate=Rate(2, per=60))), "t"),
    ],
)
def test_a_full_gate_gives_nothing_and_an_open_one_all(options: QueueOptions, full: str) -> None:
    for count in (1, 3):
        scene = Scene(options)
        jobs = scene.jobs(3, task=full)
        with pytest.raises(AssertionError, match="full" if count == 3 else "was left"):
            scene.answer(scene.request(), *jobs[:count], wait=1)


def test_runs_under_a_pressed_rate_start_with_the_delay_and_others_without() -> None:
    scene = Scene(QueueOptions(rate=Rate(2)))
    jobs = scene.jobs(4)
    free, pressed = {"start_in": 0, "start_within": 35_000}, {"start_in": 30_000, "start_within": 5_000}
    with pytest.raises(AssertionError, match=r"which should be in \{\(0, 35000\)\}"):
        scene.answer(scene.request(most=2), *jobs[:2], **pressed)
    scene = Scene(QueueOptions(rate=Rate(2)))
    jobs = scene.jobs(4)
    scene.answer(scene.request(most=2), *jobs[:2], **free)
    scene.now += counts_until(Rate(2), step_at(Rate(2), scene.now)) - scene.now
    with pytest.raises(AssertionError, match=r"which should be in \{\(30000, 5000\)\}"):
        scene.answer(scene.request(most=2), *jobs[2:], **free)


def test_a_paused_unwanted_or_expired_job_is_not_taken() -> None:
    scene = Scene()
    (job,) = scene.jobs(1)
    with pytest.raises(AssertionError, match="was not wanted"):
        scene.answer(scene.request("p"), job)
    scene.reference.queues.pause("q", by="", why="", now=scene.now)
    with pytest.raises(AssertionError, match="is paused"):
        scene.answer(scene.request(), job)
    (short,) = scene.jobs(1, queue="r", expires=SECOND)
    scene.now += SECOND
    with pytest.raises(AssertionError, match="had expired"):
        scene.answer(scene.request("r"), short)


def test_a_job_that_waits_is_not_taken() -> None:
    scene = Scene()
    (job,) = scene.jobs(1, delay=MINUTE)
    with pytest.raises(AssertionError, match="not ready"):
        scene.answer(scene.request(), job)


def test_suspects_are_bounded_and_hold_nobody_back() -> None:
    scene = Scene()
    suspect, innocent = scene.jobs(2)
    scene.reference.store.jobs[suspect.id].suspect = True
    with pytest.raises(AssertionError, match="more suspects"):
        scene.answer(scene.request(), suspect, innocent)
    scene = Scene()
    suspect, innocent = scene.jobs(2)
    scene.reference.store.jobs[suspect.id].suspect = True
    with pytest.raises(AssertionError, match="was left"):
        scene.answer(scene.request())
    scene.answer(scene.request(), innocent)


def test_fences_grow() -> None:
    scene = Scene()
    jobs = scene.jobs(2)
    with pytest.raises(AssertionError, match="fence 7 after 7"):
        scene.answer(scene.request(), *jobs, fence=7)


def test_a_claimed_job_shows_what_it_is() -> None:
    scene = Scene()
    (job,) = scene.jobs(1)
    with pytest.raises(AssertionError, match="attempt"):
        scene.answer(scene.request(), job, attempt=2)


def test_a_repeat_answers_the_same() -> None:
    scene = Scene()
    first, second = scene.jobs(2)
    (shown,) = scene.answer(scene.request(most=1), first)
    again = scene.request(number=1)
    scene.answer(again, first, fence=shown.fence, wait=0)
    with pytest.raises(AssertionError, match="goes on at once"):
        scene.answer(again, first, fence=shown.fence)
    with pytest.raises(AssertionError, match="something else"):
        scene.answer(again, second, wait=0)
    stopped = Settlement(id=first.id, fence=shown.fence, outcome=Stopped())
    scene.reference.jobs.settle([stopped], now=scene.now)
    scene.answer(again, wait=0)
    with pytest.raises(AssertionError, match="something else"):
        scene.answer(again, first, fence=shown.fence, wait=0)


def test_the_wait_is_never_too_long() -> None:
    for wait, reason in ((None, "wait is None"), (MINUTE + 1, "comes in"), (0, "busy loop")):
        scene = Scene()
        scene.jobs(1, delay=MINUTE)
        with pytest.raises(AssertionError, match=reason):
            scene.answer(scene.request(), wait=wait)
    scene = Scene()
    scene.jobs(1, delay=MINUTE)
    scene.answer(scene.request(), wait=MINUTE)
    scene.answer(scene.request("p"))
    with pytest.raises(AssertionError, match="nothing comes by time alone"):
        scene.answer(scene.request("p"), wait=MINUTE)


def test_who_has_to_be_refused_is_not_answered() -> None:
    scene = Scene()
    jobs = scene.jobs(2)
    scene.answer(scene.request(most=1, number=5), jobs[0])
    with pytest.raises(AssertionError, match="ClaimOutOfOrder"):
        scene.answer(scene.request(most=1, number=4), jobs[1])
    scene.reference.members.retire(scene.claimant, [], now=scene.now)
    with pytest.raises(AssertionError, match="ClaimantRetired"):
        scene.answer(scene.request(most=1), jobs[1])
    scene.reference.members.leave(scene.member.id, now=scene.now)
    with pytest.raises(AssertionError, match="MemberGone"):
        scene.answer(scene.request(most=1), jobs[1])


@pytest.mark.parametrize("error", [ClaimantRetired("no"), ClaimOutOfOrder("no"), MemberGone("no")])
def test_who_need_not_be_refused_is_answered(error: Refused) -> None:
    scene = Scene()
    with pytest.raises(AssertionError, match="without reason"):
        scene.reference.claims.accept_refusal(scene.request(), error, scene.now + HOUR)
