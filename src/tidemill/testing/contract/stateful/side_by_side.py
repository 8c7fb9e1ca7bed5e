"""An engine and the reference side by side: the same calls, and a comparison after each."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from tidemill.engine.registry import connect
from tidemill.model.errors import (
    ClaimantRetired,
    MemberGone,
    NotUnique,
    Refused,
    TidemillError,
    UnknownParent,
)
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import Claim, ClaimRequest
from tidemill.model.member import ClaimantHeartbeat
from tidemill.model.time import DAY, MINUTE, Instant
from tidemill.model.why.facts import WhyFacts
from tidemill.testing.contract.reference import Reference, View, differences
from tidemill.testing.contract.reference.why import wrong_facts
from tidemill.testing.contract.stateful.players import PlayedChild, PlayedScript

T = TypeVar("T")

EITHER = (NotUnique, UnknownParent)
"""A call that is to be refused for both may be refused for either."""
ASKED = 4
"""Of so many jobs each claim is compared with the reasons why they do not run."""
WAITING = (JobState.READY, JobState.SCHEDULED, JobState.BLOCKED)


class SideBySide(RuleBasedStateMachine):
    """One engine, one reference, one clock."""

    fresh_engine_url: ClassVar[Callable[[], str]]
    reference_type: ClassVar[type[Reference]] = Reference

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.engine = self.run(connect(type(self).fresh_engine_url()))
        self.reference = self.reference_type()
        self.script = PlayedScript()
        self._mark = 0
        self._options = (-1, 0)

    def teardown(self) -> None:
        self.run(self.engine.close())
        self.runner.close()

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(call)

    @property
    def now(self) -> Instant:
        return self.script.now

    # What is seen

    def snapshot(self) -> View:
        return self.run(self._snapshot())

    async def _snapshot(self) -> View:
        engine, now = self.engine, self.now
        ids = [*self.script.ids, *self.reference.store.possible_handlers()]
        jobs = dict(zip(ids, await engine.inspect.get(ids, now=now), strict=True)) if ids else {}
        absent = [job_id for job_id, job in jobs.items() if job is None]
        answers = await engine.jobs.watch(absent, waiter="w", ttl=MINUTE, now=now) if absent else []
        window = DAY if len(ids) % 2 else 5 * MINUTE
        return View(
            now=now,
            window=window,
            jobs=jobs,
            tombstones=dict(zip(absent, answers, strict=True)),
            counts=await engine.inspect.counts(window=window, now=now),
            queues=await engine.queues.list(),
            members=await engine.members.list(now=now),
            groups=(await engine.inspect.dead_groups(limit=1_000)).groups,
            tasks=await engine.tasks.list(),
        )

    def compare(self, view: View | None = None) -> None:
        store, view = self.reference.store, view or self.snapshot()
        store.adopt_handlers(self._mark, view.jobs)
        self._mark = store.positions
        found = differences(store, view)
        assert not found, "the engine differs from the reference:\n" + "\n".join(found)

    def both(
        self, engine: Coroutine[Any, Any, T], reference: Callable[[], T], *, replaced_from: int | None = None
    ) -> None:
        """The same answer, or the same error, from both. `replaced_from`: where a job stands among others
        since that position is not fixed, if a call of the same step replaced it."""
        answer, error = self.attempt(engine)
        try:
            right: T | type[TidemillError] = reference()
        except TidemillError as refused:
            right = type(refused)
        either = type(error) in EITHER and right in EITHER
        shown = type(error) if error else answer
        assert either or shown == right, f"answered {error or answer}, should be {right}"
        view = self.snapshot()
        if replaced_from is not None:
            self.reference.store.adopt_replaced(replaced_from, view.jobs)
        self.compare(view)

    def attempt(self, call: Coroutine[Any, Any, T]) -> tuple[T | None, TidemillError | None]:
        try:
            return self.run(call), None
        except TidemillError as error:
            return None, error

    def heartbeat_of(self, number: int) -> None:
        info, children = self.script.members[number], self.script.children_of(number)
        heartbeats = [
            ClaimantHeartbeat(claimant=child.id, answered_through=child.number, held=tuple(child.held))
            for child in children
        ]
        reply = self.run(self.engine.members.heartbeat(info, heartbeats, now=self.now))
        store = self.reference.store
        mark = store.positions
        right = self.reference.members.heartbeat(info, heartbeats, now=self.now)
        store.adopt_order(mark, self.snapshot().known)
        shown = (reply.new, set(reply.lost), set(reply.stop_requests))
        assert shown == tuple(right), f"a heartbeat answered {shown}, should be {right}"
        assert reply.now == self.now
        assert reply.number > store.top_heartbeat, "the number of a heartbeat grows"
        store.top_heartbeat = reply.number
        seen, changes = self._options
        assert reply.options != seen or store.options == changes, "a heartbeat shows that options changed"
        self._options = (reply.options, store.options)
        for child in children:
            child.lose(reply.lost)

    def adopt(self, mark: int, answer: object, right: object) -> None:
        assert answer == right, f"answered {answer}, should be {right}"
        view = self.snapshot()
        self.reference.store.adopt_order(mark, view.jobs)
        self.compare(view)

    def judge(
        self,
        who: PlayedChild,
        request: ClaimRequest,
        answer: Claim | None,
        error: TidemillError | None,
        *,
        lost: bool,
    ) -> None:
        if answer is None:
            assert isinstance(error, Refused), f"a claim raised {error!r}"
            self.reference.claims.accept_refusal(request, error, self.now)
            if isinstance(error, ClaimantRetired | MemberGone):
                who.respawn()
                self.heartbeat_of(who.member)
            return
        self.reference.claims.accept(request, answer, self.now, self.snapshot().known)
        self.script.runs += [(job.id, job.fence) for job in answer.jobs]
        if not lost:
            who.receive(request, answer)

    def facts_before(self, request: ClaimRequest) -> tuple[list[WhyFacts | None], bool]:
        """Why a few jobs are where they are, just before this claim; and whether it is a repeat."""
        store = self.reference.store
        claimant = store.claimants.get(request.claimant)
        repeat = claimant is not None and claimant.last_number == request.number
        waiting = [job.id for job in store.in_state(*WAITING)]
        at = request.number % len(waiting) if waiting else 0
        ids = list(dict.fromkeys([*(request.ids or ()), *waiting[at:], *waiting]))[:ASKED]
        found = self.run(self.engine.inspect.why(ids, now=self.now))
        shown = dict(zip(waiting, self.run(self.engine.inspect.get(waiting, now=self.now)), strict=True))
        wrong = wrong_facts(store, found, shown)
        assert not wrong, "the facts are wrong:\n" + "\n".join(wrong)
        return found, repeat

    def pick_ids(self, picks: list[int], *, related: bool = True) -> list[JobId]:
        """With `related=False`, no child comes after its parent: whether it feels the parent's end
        within the call is not fixed."""
        jobs = [self.script.job(number) for number in picks]
        return [job.id for number, job in enumerate(jobs) if related or number == 0 or not job.after]
