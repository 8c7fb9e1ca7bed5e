"""`moves`: a step names the jobs that came into another state, where its caller could not know."""

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from tidemill.engine.protocol import Engine, JobsFacet, MembersFacet
from tidemill.model.errors import TidemillError
from tidemill.model.jobs.job import JobState, ParentDied
from tidemill.model.jobs.move import MOVES_LIMIT, Move, Moves
from tidemill.model.jobs.run import Failed, LostRun, Release, Stopped, Then
from tidemill.model.member import HEARTBEAT, LEASE
from tidemill.model.time import SECOND
from tidemill.testing.contract.faults import cut_facets, cut_jobs  # noqa: F401  (they fill the table)
from tidemill.testing.contract.faults.cut import SCENARIOS, Stage, method_of
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_claimant,
    a_failure,
    a_job,
    completed,
    ids_of,
    listed,
    settlement,
    some_jobs,
)

BLOCKED, SCHEDULED, READY = JobState.BLOCKED, JobState.SCHEDULED, JobState.READY
COMPLETED, DEAD, CANCELLED = JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED
LOST = "lost: its member vanished"
ORPHANED = "parent: a parent did not complete: "
EXPIRED = "expired: not started before it expired"

NAMING = {
    f"{facet}.{name}"
    for facet, kind in (("jobs", JobsFacet), ("members", MembersFacet))
    for name, member in vars(kind).items()
    if inspect.isfunction(member) and "moves" in inspect.signature(member).parameters
}
"""The methods that take `moves`."""


def said(moves: Moves) -> list[tuple[bytes, JobState, str]]:
    """What is named, short."""
    return [(move.id, move.state, move.reason) for move in moves.named]


class Asking:
    """An engine whose every call names what it moves."""

    def __init__(self, engine: Engine, moves: Moves) -> None:
        self._engine = engine
        self._moves = moves

    def __getattr__(self, facet: str) -> Any:
        return AskingFacet(getattr(self._engine, facet), facet, self._moves)


class AskingFacet:
    def __init__(self, facet: Any, name: str, moves: Moves) -> None:
        self._facet, self._name, self._moves = facet, name, moves

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] = getattr(self._facet, name)
        if f"{self._name}.{name}" not in NAMING:
            return method
        return lambda *args, **options: method(*args, moves=self._moves, **options)


@pytest.mark.row("C2")
@pytest.mark.parametrize("name", [name for name in SCENARIOS if method_of(name) in NAMING])
async def test_every_change_of_state_is_named_or_answered(
    engine: Engine, clock: Clock, claimant: Claimant, name: str
) -> None:
    """Whatever a call does, and once more when it is repeated."""
    cut = await SCENARIOS[name](Stage(engine, clock, claimant))
    for _ in range(2):
        moves = Moves()
        before = {job.id: job.state for job in await listed(engine)}
        try:
            await cut.call(Asking(engine, moves))
        except TidemillError:
            assert not moves
        after = {job.id: job.state for job in await listed(engine)}
        changed = {
            job_id: state
            for job_id, state in after.items()
            if job_id in before and before[job_id] is not state
        }
        named = {move.id: move.state for move in moves.named}
        answered = {key: state for key, state in changed.items() if state in (JobState.RUNNING, COMPLETED)}
        assert changed == answered | {key: state for key, state in named.items() if key in changed}
        new = {job_id: state for job_id, state in after.items() if job_id not in before}
        known = changed | new | {job_id: CANCELLED for job_id in before if job_id not in after}
        assert {key: state for key, state in named.items() if key not in answered}.items() <= known.items()


@pytest.mark.row("C2")
async def test_due_jobs_are_named_in_their_order(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    later, soon = a_job("slow", delay=5), a_job("quick", delay=3)
    await engine.jobs.enqueue([later, soon], now=clock.now)
    clock.now += 5
    moves = Moves()
    claim = await engine.jobs.claim(claimant.request(), moves=moves, now=clock.now)
    assert ids_of(claim.jobs) == [soon.id, later.id]
    assert moves.named == [Move(soon.id, READY, "q", "quick"), Move(later.id, READY, "q", "slow")]
    assert moves.missed == 0


@pytest.mark.row("C2")
async def test_promote_names_what_time_has_done(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    due, expiring = a_job(delay=5), a_job("x", queue="other", expires=5)
    orphan = a_job(after=(expiring.id,))
    await engine.jobs.enqueue([due, expiring, orphan], now=clock.now)
    clock.now += 5
    moves = Moves()
    assert (await engine.jobs.promote(moves=moves, now=clock.now)).jobs == 3
    ended = [move for move in moves.named if move.state is not READY]
    assert [(move.id, move.state, move.queue, move.task) for move in ended] == [
        (expiring.id, DEAD, "other", "x"),
        (orphan.id, CANCELLED, "q", "t"),
    ]
    assert ended[0].reason == EXPIRED
    assert ended[1].reason.startswith(ORPHANED)
    assert [move.id for move in moves.named if move.state is READY] == [due.id]


@pytest.mark.row("C2")
async def test_a_claim_names_what_it_finds_expired(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    expiring = a_job(expires=5)
    await engine.jobs.enqueue([expiring], now=clock.now)
    clock.now += 5
    moves = Moves()
    assert (await engine.jobs.claim(claimant.request(), moves=moves, now=clock.now)).jobs == []
    assert said(moves) == [(expiring.id, DEAD, EXPIRED)]


@pytest.mark.row("C2")
async def test_an_enqueue_names_what_parents_made_of_its_jobs(
    engine: Engine, claimant: Claimant, clock: Clock
) -> None:
    done, dead = jobs = some_jobs(2)
    await engine.jobs.enqueue(jobs, now=clock.now)
    taken = {job.id: job for job in await claimant.take()}
    await claimant.complete(taken[done.id])
    await claimant.fail(taken[dead.id])
    live, waits, goes_on = a_job(), a_job(after=(done.id,), delay=SECOND), a_job(after=(done.id,))
    blocked, orphan = a_job(after=(live.id,)), a_job(after=(live.id, dead.id))
    new, moves = [live, waits, goes_on, blocked, orphan, a_job(delay=SECOND)], Moves()
    await engine.jobs.enqueue(new, moves=moves, now=clock.now)
    named = [(move.id, move.state) for move in moves.named]
    assert named == [
        (waits.id, SCHEDULED),
        (goes_on.id, READY),
        (blocked.id, BLOCKED),
        (orphan.id, CANCELLED),
    ]
    assert moves.named[-1].reason.startswith(ORPHANED)
    again = Moves()
    await engine.jobs.enqueue(new, moves=again, now=clock.now)
    assert not again, "a repeat moves nothing"


@pytest.mark.row("C2")
async def test_a_settle_names_children_and_what_is_tried_again(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(4), now=clock.now)
    done, tried, dead, stopped = await claimant.take()
    child, late = a_job(after=(done.id,)), a_job(after=(done.id,), delay=SECOND)
    await engine.jobs.enqueue([child, late], now=clock.now)
    settlements = [
        completed(done),
        settlement(tried, Failed(failure=a_failure("no\nroute"), retry_in=SECOND)),
        settlement(dead, Failed(failure=a_failure())),
        settlement(stopped, Stopped()),
    ]
    moves = Moves()
    await engine.jobs.settle(settlements, moves=moves, now=clock.now)
    own, children = said(moves)[:3], said(moves)[3:]
    assert sorted(own) == sorted(
        [
            (tried.id, SCHEDULED, "builtins.OSError: no\nroute"),
            (dead.id, DEAD, "builtins.OSError: no route"),
            (stopped.id, CANCELLED, ""),
        ]
    )
    assert children == [(child.id, READY, ""), (late.id, SCHEDULED, "")]
    again = Moves()
    await engine.jobs.settle(settlements, moves=again, now=clock.now)
    assert not again


async def test_a_reason_is_one_of_any_text(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    texts = ["a \x00 in it", "\\u0000", "\u20ac" * 2_000, "!\n!", ""]
    await engine.jobs.enqueue(some_jobs(len(texts)), now=clock.now)
    runs = await claimant.take()
    moves = Moves()
    settlements = [
        settlement(run, Failed(failure=a_failure(text))) for run, text in zip(runs, texts, strict=True)
    ]
    await engine.jobs.settle(settlements, moves=moves, now=clock.now)
    why = {move.id: move.reason for move in moves.named}
    assert set(why) == set(ids_of(runs))
    assert why[runs[2].id] == f"builtins.OSError: {texts[2]}"[:300]
    assert why[runs[3].id] == "builtins.OSError: !\n!"


@pytest.mark.row("C2")
async def test_a_settle_names_the_new_ones_of_those_that_follow(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    known = a_job(queue="other")
    await engine.jobs.enqueue([a_job(), known], now=clock.now)
    run = await claimant.take_one()
    new, later = a_job("after"), a_job("after", delay=SECOND)
    moves = Moves()
    then = Then(jobs=(new, known, later))
    request = claimant.request(most=1)
    await engine.jobs.settle([completed(run, then=then)], claim=request, moves=moves, now=clock.now)
    assert moves.named == [Move(new.id, READY, "q", "after"), Move(later.id, SCHEDULED, "q", "after")]


@pytest.mark.row("C2")
@pytest.mark.parametrize("died", ["cancel", "run"])
async def test_cancelled_jobs_take_their_children_along(
    engine: Engine, clock: Clock, claimant: Claimant, died: ParentDied
) -> None:
    parent, running = a_job(queue="parents"), a_job()
    child = a_job(after=(parent.id,), parent_died=died)
    await engine.jobs.enqueue([parent, running, child], now=clock.now)
    await claimant.take()
    moves = Moves()
    await engine.jobs.cancel([parent.id, running.id], moves=moves, now=clock.now)
    assert [move[:2] for move in moves.named] == [
        (parent.id, CANCELLED),
        (child.id, CANCELLED if died == "cancel" else READY),
    ]


@pytest.mark.row("C2")
async def test_what_is_released_is_named(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(4), now=clock.now)
    plain, delayed, asked, kept = await claimant.take()
    await engine.jobs.cancel([asked.id], now=clock.now)
    releases = [
        Release(id=plain.id, fence=plain.fence),
        Release(id=delayed.id, fence=delayed.fence, delay=SECOND),
        Release(id=asked.id, fence=asked.fence),
    ]
    moves = Moves()
    await engine.jobs.release(releases, moves=moves, now=clock.now)
    assert said(moves) == [(plain.id, READY, ""), (delayed.id, SCHEDULED, ""), (asked.id, CANCELLED, "")]
    named = Moves()
    mine = claimant.heartbeat_of(held=())
    await engine.members.heartbeat(claimant.member, [mine], moves=named, now=clock.now)
    assert said(named) == [(kept.id, READY, "")]
    (again,) = await claimant.take(ids=(kept.id,))
    left = Moves()
    assert await engine.members.leave(claimant.member.id, moves=left, now=clock.now) == 1
    assert said(left) == [(again.id, READY, "")]


@pytest.mark.row("C2")
async def test_what_a_dead_child_held_is_named(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    crashed, suspect, other = await claimant.take()
    lost_runs = [
        LostRun(id=crashed.id, fence=crashed.fence, verdict="crash", message="signal 11"),
        LostRun(id=suspect.id, fence=suspect.fence, verdict="suspect"),
    ]
    moves = Moves()
    assert await engine.jobs.retire(claimant.id, lost_runs, moves=moves, now=clock.now) == 3
    assert sorted(said(moves)) == sorted(
        [
            (crashed.id, READY, "crash: signal 11"),
            (suspect.id, READY, "lost: its process died"),
            (other.id, READY, ""),
        ]
    )


@pytest.mark.row("C2")
async def test_what_a_gone_member_held_is_named(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    one, asked = await claimant.take()
    await engine.jobs.cancel([asked.id], now=clock.now)
    sweeper = await a_claimant(engine, clock, name="sweeper")
    for _ in range(LEASE // HEARTBEAT + 1):
        clock.now += HEARTBEAT
        await sweeper.heartbeat()
    moves = Moves()
    assert (await engine.jobs.reclaim(sweeper.member.id, moves=moves, now=clock.now)).jobs == 2
    assert sorted(said(moves)) == sorted([(one.id, READY, LOST), (asked.id, CANCELLED, LOST)])


@pytest.mark.row("C2")
async def test_what_is_replayed_is_named(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await claimant.complete(run)
    for named in ([(run.id, READY, "")], []):
        moves = Moves()
        await engine.jobs.replay([run.id], token=b"t" * 16, moves=moves, now=clock.now)
        assert said(moves) == named


async def test_one_step_names_no_more_than_the_bound(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    """A claimant that held more than that is dead: nothing else bounds what retire releases."""
    for _ in range(MOVES_LIMIT // 1_000 + 1):
        await engine.jobs.enqueue(some_jobs(1_000), now=clock.now)
        assert len(await claimant.take(most=1_000)) == 1_000
    moves = Moves()
    held = await engine.jobs.retire(claimant.id, moves=moves, now=clock.now)
    assert held == MOVES_LIMIT + 1_000
    assert (len(moves.named), moves.missed) == (MOVES_LIMIT, 1_000)
