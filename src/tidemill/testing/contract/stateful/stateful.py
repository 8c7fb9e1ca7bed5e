"""Random commands, given to an engine and to the reference, which must agree after every one.

Three members with two children each enqueue, claim, settle, lose answers and repeat them, die, are
swept; operators configure, pause, cancel, replay, drop; the clock jumps. Every command may be given
twice, as by a caller whose reply was lost. A failure is shrunk by Hypothesis to a short script.

The project that runs the suite defines the fixture `fresh_engine_url`: a callable that gives the URL of a
new, empty database each time. `TIDEMILL_STATEFUL=deep` searches much longer (give pytest `--timeout=0`),
`sample` a quarter as long; `TIDEMILL_STATEFUL_SEED` is a number that chooses the commands.
"""

import os
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tidemill.model.jobs.job import Edit, JobState, NewJob
from tidemill.model.jobs.run import LostRun, LostRunVerdict, Note, Progress, Release, ReleaseReason, Started
from tidemill.model.member import HEARTBEAT
from tidemill.model.queues.layers import Declaration, fields_of
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import SECOND, Span
from tidemill.testing.contract.jobs.commands import (
    HANDLER,
    PUBLISHED,
    QUEUES,
    TASKS,
    UNKNOWN_QUEUE,
    batches,
    claims,
    edits,
    flag,
    options,
    outcomes,
    pick,
    reasons,
    seldom,
    short,
    spans,
    verdicts,
)
from tidemill.testing.contract.reference.why import disagreements
from tidemill.testing.contract.stateful.side_by_side import SideBySide

EXAMPLES = {"sample": 10, "quick": 60, "deep": 5_000}
STEPS = {"sample": 40, "quick": 40, "deep": 80}
ALL = 1_000
WAITING = (JobState.READY, JobState.SCHEDULED, JobState.RUNNING)


class RandomCommands(SideBySide):
    """The commands."""

    # Time and members

    @initialize(a=options(), b=options(), configured=flag)
    def begin(self, a: QueueOptions, b: QueueOptions, configured: bool) -> None:
        for number in range(len(self.script.members)):
            self.heartbeat_of(number)
        self.run(self.engine.tasks.publish([HANDLER, PUBLISHED], now=self.now))
        self.reference.tasks.publish([HANDLER, PUBLISHED])
        if configured:
            self.configure(QUEUES[0], a, again=False)
            self.configure(QUEUES[1], b, again=False)

    @rule(span=spans)
    def time_passes(self, span: Span) -> None:
        """Nobody calls: idle, or the engine is out of reach."""
        self.script.now += span
        self.compare()

    @rule(heartbeats=st.integers(1, 8), alive=st.sets(st.integers(0, 2)))
    def time_passes_with_heartbeats(self, heartbeats: int, alive: set[int]) -> None:
        """Some members live on; the others are silent."""
        for _ in range(heartbeats):
            self.script.now += HEARTBEAT
            for number in sorted(alive):
                self.heartbeat_of(number)
        self.compare()

    @rule(number=st.integers(0, 2), forgets=seldom, again=seldom)
    def heartbeat(self, number: int, forgets: bool, again: bool) -> None:
        if forgets:
            for child in self.script.children_of(number):
                child.forget_oldest()
        for _ in range(1 + again):
            self.heartbeat_of(number)
        self.compare()

    @rule(number=st.integers(0, 2))
    def member_dies(self, number: int) -> None:
        """A new process group starts in its stead; the old one's jobs wait for a sweeper."""
        self.script.restart(number)
        self.heartbeat_of(number)
        self.compare()

    @rule(number=st.integers(0, 2), again=seldom)
    def leave(self, number: int, again: bool) -> None:
        member = self.script.members[number].id
        for _ in range(1 + again):
            answer, mark = (
                self.run(self.engine.members.leave(member, now=self.now)),
                self.reference.store.positions,
            )
            right = self.reference.members.leave(member, now=self.now)
            self.adopt(mark, answer, right)

    @rule(number=st.integers(0, 2), limit=st.just(ALL) | st.integers(1, 2), again=seldom)
    def reclaim(self, number: int, limit: int, again: bool) -> None:
        member = self.script.members[number].id
        for _ in range(1 + again):
            answer = self.run(self.engine.jobs.reclaim(member, limit=limit, now=self.now))
            seen, mark = self.snapshot().known, self.reference.store.positions
            right = self.reference.members.reclaim(
                member, limit=limit, now=self.now, seen=seen, dropped=answer.gone
            )
            self.adopt(mark, (answer.entitled, answer.jobs, sorted(answer.gone)), tuple(right))

    @rule(heartbeats=st.just(6), number=st.integers(0, 2))
    def only_one_lives_and_sweeps(self, heartbeats: int, number: int) -> None:
        """The way to a reclaim that is entitled, which chance alone seldom finds."""
        self.time_passes_with_heartbeats(heartbeats, {number})
        self.reclaim(number, ALL, again=False)

    @rule(child=pick, verdicts=verdicts, respawn=flag, again=seldom)
    def retire(self, child: int, verdicts: list[LostRunVerdict | None], respawn: bool, again: bool) -> None:
        dead = self.script.child(child)
        lost_runs = [
            LostRun(id=job_id, fence=fence, verdict=verdict, message="killed")
            for (fence, job_id), verdict in zip(dead.held.items(), verdicts, strict=False)
            if verdict
        ]
        for _ in range(1 + again):
            answer = self.run(self.engine.jobs.retire(dead.id, lost_runs, now=self.now))
            mark = self.reference.store.positions
            right = self.reference.members.retire(dead.id, lost_runs, now=self.now)
            self.adopt(mark, answer, right)
        if respawn:
            dead.respawn()

    # Producers

    @rule(batch=batches, again=seldom)
    def enqueue(self, batch: list[dict[str, Any]], again: bool) -> None:
        jobs = self.script.new_jobs(batch)
        for _ in range(1 + again):
            mark = self.reference.store.positions
            self.both(
                self.engine.jobs.enqueue(jobs, now=self.now),
                lambda: self.reference.jobs.enqueue(jobs, now=self.now),
                replaced_from=mark,
            )

    @precondition(lambda self: self.script.jobs)
    @rule(picks=st.lists(pick, min_size=1, max_size=3))
    def enqueue_known_ids(self, picks: list[int]) -> None:
        jobs: list[NewJob] = [self.script.job(number) for number in picks]
        self.both(
            self.engine.jobs.enqueue(jobs, now=self.now),
            lambda: self.reference.jobs.enqueue(jobs, now=self.now),
        )

    # Workers

    @rule(child=pick, claim=claims, lost=seldom)
    def claim(self, child: int, claim: dict[str, Any], lost: bool) -> None:
        who = self.script.child(child)
        request = self.script.claim_request(who, claim)
        facts, repeat = self.facts_before(request)
        answer, error = self.attempt(self.engine.jobs.claim(request, now=self.now))
        self.judge(who, request, answer, error, lost=lost)
        if answer is not None and not repeat:
            found = disagreements(facts, request, answer)
            assert not found, "the reasons and the claim disagree:\n" + "\n".join(found)
        self.compare()

    @rule(
        child=pick, ended=st.lists(outcomes, max_size=4), claim=st.none() | claims, lost=seldom, again=seldom
    )
    def settle(
        self, child: int, ended: list[dict[str, Any]], claim: dict[str, Any] | None, lost: bool, again: bool
    ) -> None:
        who = self.script.busy_child(child)
        settlements = self.script.settlements(who, ended)
        request = self.script.claim_request(who, claim) if claim else None
        store = self.reference.store
        for _ in range(1 + again):
            mark, cascades = store.positions, store.cascades
            answer = self.run(self.engine.jobs.settle(settlements, claim=request, now=self.now))
            right = self.reference.jobs.settle(settlements, now=self.now)
            if store.cascades > cascades:  # which comes first is not fixed: a child, or a child's child
                store.adopt_order(mark, self.snapshot().jobs)
            for item, said, should in zip(settlements, answer.answers, right, strict=True):
                fits = said is should or self.reference.jobs.knew_longer(item, should, said)
                assert fits, f"settle answered {said}, should be {should}"
            assert (request is None) is (answer.claim is None and answer.refused is None)
            if request is not None:
                self.judge(who, request, answer.claim, answer.refused, lost=lost)
            self.compare()
        if not lost:
            who.lose([settlement.fence for settlement in settlements])

    @rule(
        child=pick,
        runs=st.lists(st.tuples(pick, seldom, st.none() | short, reasons), min_size=1, max_size=3),
        again=seldom,
    )
    def release(
        self, child: int, runs: list[tuple[int, bool, Span | None, ReleaseReason | None]], again: bool
    ) -> None:
        who = self.script.busy_child(child)
        releases = [
            Release(id=job_id, fence=fence, delay=delay, reason=reason)
            for number, stale, delay, reason in runs
            for job_id, fence in self.script.run_of(who, number, stale=stale)
        ]
        for _ in range(1 + again):
            self.both(
                self.engine.jobs.release(releases, now=self.now),
                lambda: self.reference.jobs.release(releases, now=self.now),
            )
        who.lose([release.fence for release in releases])

    @rule(child=pick, runs=st.lists(st.tuples(pick, seldom, flag), min_size=1, max_size=3), again=seldom)
    def write(self, child: int, runs: list[tuple[int, bool, bool]], again: bool) -> None:
        who = self.script.busy_child(child)
        notes = [
            Note(id=job_id, fence=fence, entry=Started() if started else Progress(value=b"%d" % number))
            for number, stale, started in runs
            for job_id, fence in self.script.run_of(who, number, stale=stale)
        ]
        for _ in range(1 + again):
            self.both(
                self.engine.jobs.write(notes, now=self.now),
                lambda: self.reference.jobs.write(notes, now=self.now),
            )

    @rule(batch=batches, child=pick, claim=claims)
    def enqueue_and_claim(self, batch: list[dict[str, Any]], child: int, claim: dict[str, Any]) -> None:
        self.enqueue(batch, again=False)
        self.claim(child, claim, lost=False)

    @precondition(lambda self: self.reference.store.in_state(*WAITING))
    @rule(child=pick, claim=claims, ended=st.lists(outcomes, min_size=1, max_size=4), span=short)
    def work(self, child: int, claim: dict[str, Any], ended: list[dict[str, Any]], span: Span) -> None:
        """Claim, take some time, settle."""
        self.claim(child, claim, lost=False)
        self.time_passes(span)
        self.settle(child, ended, None, lost=False, again=False)

    @precondition(lambda self: self.reference.store.in_state(*WAITING))
    @rule(child=pick, claim=claims, ended=st.lists(outcomes, min_size=2, max_size=4))
    def work_off(self, child: int, claim: dict[str, Any], ended: list[dict[str, Any]]) -> None:
        """Settle one after the other, with the next claim in the same trip."""
        for outcome in ended:
            self.settle(child, [outcome], claim, lost=False, again=False)

    @precondition(lambda self: self.reference.store.in_state(*WAITING))
    @rule(child=pick, claim=claims, verdicts=verdicts)
    def claim_and_crash(
        self, child: int, claim: dict[str, Any], verdicts: list[LostRunVerdict | None]
    ) -> None:
        self.claim(child, claim, lost=False)
        self.retire(child, verdicts, respawn=True, again=False)

    # Operators

    @precondition(lambda self: self.script.jobs)
    @rule(picks=st.lists(pick, min_size=1, max_size=3), again=seldom)
    def cancel(self, picks: list[int], again: bool) -> None:
        ids = self.pick_ids(picks, related=False)
        for _ in range(1 + again):
            self.both(
                self.engine.jobs.cancel(ids, now=self.now),
                lambda: self.reference.jobs.cancel(ids, now=self.now),
            )

    @precondition(lambda self: self.reference.store.in_state(JobState.SCHEDULED))
    @rule(picks=st.lists(pick, min_size=1, max_size=3), again=seldom)
    def run_now(self, picks: list[int], again: bool) -> None:
        ids = self.pick_ids(picks)
        for _ in range(1 + again):
            self.both(
                self.engine.jobs.run_now(ids, now=self.now),
                lambda: self.reference.jobs.run_now(ids, now=self.now),
            )

    @precondition(lambda self: self.script.jobs)
    @rule(picks=st.lists(pick, min_size=1, max_size=4), again=seldom, edit=st.none() | edits)
    def replay(self, picks: list[int], again: bool, edit: Edit | None) -> None:
        ids, token = self.pick_ids(picks), self.script.token()
        if edit is not None:
            del ids[1:]
        for _ in range(1 + again):
            self.both(
                self.engine.jobs.replay(ids, token=token, edit=edit, now=self.now),
                lambda: self.reference.jobs.replay(ids, token=token, edit=edit, now=self.now),
            )

    @precondition(lambda self: self.script.jobs)
    @rule(picks=st.lists(pick, min_size=1, max_size=2), again=seldom)
    def drop(self, picks: list[int], again: bool) -> None:
        ids = self.pick_ids(picks, related=False)
        for _ in range(1 + again):
            self.both(
                self.engine.jobs.drop(ids, now=self.now),
                lambda: self.reference.jobs.drop(ids, now=self.now),
            )

    @rule(limit=st.just(ALL) | st.integers(1, 2), again=seldom)
    def promote(self, limit: int, again: bool) -> None:
        for _ in range(1 + again):
            answer = self.run(self.engine.jobs.promote(limit=limit, now=self.now))
            view = self.snapshot()
            right = self.reference.jobs.promote(limit=limit, now=self.now, seen=view.known)
            assert (answer.jobs, answer.wait) == right, f"promote answered {answer}, should be {right}"
            self.compare(view)

    @rule(limit=st.just(ALL) | st.integers(1, 2), again=seldom)
    def prune(self, limit: int, again: bool) -> None:
        for _ in range(1 + again):
            answer = self.run(self.engine.jobs.prune(limit=limit, now=self.now))
            view, mark = self.snapshot(), self.reference.store.positions
            self.reference.jobs.prune(
                limit=limit,
                now=self.now,
                seen=view.jobs,
                tombstones=view.tombstones,
                jobs=answer.jobs,
                more=answer.more,
            )
            self.reference.store.adopt_order(mark, view.jobs)
            self.compare(view)

    @rule(queue=st.sampled_from(QUEUES), options=options(), again=seldom)
    def configure(self, queue: str, options: QueueOptions, again: bool) -> None:
        self.declare(queue, options, "shop", 0, uses_only=False, again=again)

    @rule(
        queue=st.sampled_from(QUEUES),
        options=options(),
        app=st.sampled_from(["shop", "bill"]),
        earlier=st.sampled_from([0, 0, 1, SECOND]),
        uses_only=seldom,
        again=seldom,
    )
    def declare(
        self, queue: str, options: QueueOptions, app: str, earlier: Span, uses_only: bool, again: bool
    ) -> None:
        """Two apps; a member of an older release may be the later one to speak."""
        fields, at = fields_of(options), self.now - earlier
        keep = {name: fields.pop(name) for name in list(fields) if name.startswith("keep")}
        if uses_only:
            said = Declaration(defaults=keep, declares=False, declared_at=at)
        else:
            said = Declaration(fields=fields, defaults=keep, declared_at=at)
        for _ in range(1 + again):
            self.both(
                self.engine.queues.declare(app, {queue: said}, now=self.now),
                lambda: self.reference.queues.declare(app, {queue: said}, now=self.now),
            )

    @rule(
        queue=st.sampled_from((*QUEUES, UNKNOWN_QUEUE)),
        app=st.sampled_from(["shop", "bill"]),
        right=flag,
        again=seldom,
    )
    def retire_declaration(self, queue: str, app: str, right: bool, again: bool) -> None:
        known = self.reference.store.queues.get(queue)
        said = known.layers.declared.get(app) if known else None
        at = said.declared_at if said and right else 1
        for _ in range(1 + again):
            self.both(
                self.engine.queues.retire(queue, app, declared_at=at, now=self.now),
                lambda: self.reference.queues.retire(queue, app, declared_at=at),
            )

    @rule(
        queue=st.sampled_from((*QUEUES, UNKNOWN_QUEUE)),
        options=options(),
        none=st.sets(st.sampled_from(["concurrency", "rate", "per_key", "fair_by"]), max_size=2),
        why=st.sampled_from(["", "night"]),
        stale=seldom,
        again=seldom,
    )
    def override(
        self, queue: str, options: QueueOptions, none: set[str], why: str, stale: bool, again: bool
    ) -> None:
        """Some of them contradict what is declared: those are refused."""
        fields = {**fields_of(options), **dict.fromkeys(sorted(none))} or {"concurrency": None}
        known = self.reference.store.queues.get(queue)
        version = (known.version if known else 0) + stale
        for _ in range(1 + again):
            self.both(
                self.engine.queues.override(queue, fields, by="me", why=why, version=version, now=self.now),
                lambda: self.reference.queues.override(
                    queue, fields, by="me", why=why, version=version, now=self.now
                ),
            )

    @rule(
        queue=st.sampled_from((*QUEUES, UNKNOWN_QUEUE)),
        names=st.none() | st.lists(st.sampled_from(["concurrency", "per_key", "keep_dead"]), max_size=2),
        again=seldom,
    )
    def reset(self, queue: str, names: list[str] | None, again: bool) -> None:
        for _ in range(1 + again):
            self.both(
                self.engine.queues.reset(queue, names, by="me", now=self.now),
                lambda: self.reference.queues.reset(queue, names),
            )

    @rule(queue=st.sampled_from((*QUEUES, UNKNOWN_QUEUE)), paused=seldom, why=st.sampled_from(["", "deploy"]))
    def pause_or_resume(self, queue: str, paused: bool, why: str) -> None:
        if paused:
            self.both(
                self.engine.queues.pause(queue, by="me", why=why, now=self.now),
                lambda: self.reference.queues.pause(queue, by="me", why=why, now=self.now),
            )
        else:
            self.both(
                self.engine.queues.resume(queue, by="me", now=self.now),
                lambda: self.reference.queues.resume(queue),
            )

    @rule(task=st.sampled_from((*TASKS, HANDLER.name)), paused=seldom, why=st.sampled_from(["", "deploy"]))
    def pause_or_resume_task(self, task: str, paused: bool, why: str) -> None:
        if paused:
            self.both(
                self.engine.tasks.pause(task, by="me", why=why, now=self.now),
                lambda: self.reference.tasks.pause(task, by="me", why=why, now=self.now),
            )
        else:
            self.both(
                self.engine.tasks.resume(task, by="me", now=self.now),
                lambda: self.reference.tasks.resume(task),
            )


def run_commands(
    machine: type[RandomCommands],
    fresh_engine_url: Callable[[], str],
    number: int | None = None,
    **instead: Any,
) -> None:
    """Let random commands run until they are used up or a difference is found. `number` chooses them."""

    class BoundMachine(machine):  # type: ignore[valid-type, misc]
        pass

    BoundMachine.fresh_engine_url = staticmethod(fresh_engine_url)
    if number is None and (given := os.environ.get("TIDEMILL_STATEFUL_SEED")):
        number = int(given)
    if number is not None:
        seed(number)(BoundMachine)
    profile = os.environ.get("TIDEMILL_STATEFUL", "quick")
    chosen: dict[str, Any] = {
        "max_examples": EXAMPLES[profile],
        "stateful_step_count": STEPS[profile],
        "deadline": None,
        "print_blob": True,
        "suppress_health_check": list(HealthCheck),
        "phases": [phase for phase in Phase if phase is not Phase.explain],
    }
    run_state_machine_as_test(BoundMachine, settings=settings(**chosen | instead))


@pytest.mark.row("F1")
def test_random_commands(fresh_engine_url: Callable[[], str]) -> None:
    run_commands(RandomCommands, fresh_engine_url)
