"""Calls of which nobody knows what they changed: without an answer, or begun before anybody listened."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tests.integration.events.conftest import Open, Process
from tests.integration.events.held import a_held
from tests.integration.events.reading import new_jobs, read, read_until, take
from tests.integration.supervisor.processes import until
from tidemill import Event, Gap, Tidemill
from tidemill.engine.protocol import Engine
from tidemill.model.errors import EngineFull, EngineUnavailable, MemberGone
from tidemill.model.ids import new_id
from tidemill.model.jobs.run import ClaimRequest, Completed, Release, Settlement, Want
from tidemill.model.member import ClaimantHeartbeat, MemberInfo
from tidemill.model.time import HOUR


class Unanswered:
    """A facet that refuses calls, or whose answers do not arrive."""

    def __init__(self, facet: Any) -> None:
        self._facet = facet
        self.refusal: Exception | None = None
        self.error: BaseException | None = None

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._facet, name)

        async def call(*args: Any, **options: Any) -> Any:
            if self.refusal is not None:
                raise self.refusal
            answer = await method(*args, **options)
            if self.error is not None:
                raise self.error
            return answer

        return call


class UnansweredEngine:
    """An engine with such facets."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.jobs, self.members = Unanswered(engine.jobs), Unanswered(engine.members)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


@pytest.mark.every_engine
@pytest.mark.row("C2")
async def test_an_answer_that_does_not_come_is_a_gap(app: Tidemill, open_process: Open) -> None:
    """The call may have changed something, and nobody here knows what."""
    made: list[UnansweredEngine] = []

    def around(engine: Engine) -> Any:
        made.append(UnansweredEngine(engine))
        return made[-1]

    process = await open_process(around)
    [jobs], member = [one.jobs for one in made], MemberInfo(id=b"m" * 16, name="host:1", lease=HOUR)
    request = ClaimRequest(member=member.id, claimant=b"c" * 16, number=1, wants=(Want("default"),), most=1)
    calls: list[Callable[[], Any]] = [
        lambda: process.engine.jobs.enqueue(new_jobs(1)),
        lambda: process.engine.jobs.claim(request),
        lambda: process.engine.jobs.settle([]),
        lambda: process.engine.jobs.promote(),
    ]
    async with app.events() as events:
        await process.engine.members.heartbeat(member)
        for call in calls:
            for error in (EngineUnavailable("gone"), asyncio.CancelledError()):
                jobs.error = error
                with pytest.raises(type(error)):
                    await call()
                jobs.error = None
                found = await read_until(events, lambda found: bool(found) and isinstance(found[-1], Gap))
                assert found[-1] == Gap("lost")
        jobs.error = MemberGone("changes nothing")
        with pytest.raises(MemberGone):
            await process.engine.jobs.claim(request)
        jobs.error = None
        await process.engine.jobs.enqueue(new_jobs(1))
        await read(events, 1)
        jobs.error = EngineUnavailable("gone")
        for _ in range(3):
            with pytest.raises(EngineUnavailable):
                await process.engine.jobs.promote()
        jobs.error = None
        await process.engine.jobs.enqueue(new_jobs(1))
        *gaps, _ = await read_until(events, lambda found: bool(found) and isinstance(found[-1], Event))
    assert set(gaps) == {Gap("lost")}


@pytest.mark.row("C2")
async def test_what_a_full_server_refuses_is_no_gap(
    app: Tidemill, open_process: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It changed nothing."""
    made: list[UnansweredEngine] = []

    def around(engine: Engine) -> Any:
        made.append(UnansweredEngine(engine))
        return made[-1]

    process, [job] = await open_process(around), new_jobs(1)
    [facets], engine, full = made, process.engine, EngineFull("no space is left")
    member = MemberInfo(id=b"m" * 16, name="host:1", lease=HOUR)
    request = ClaimRequest(member=member.id, claimant=b"c" * 16, number=1, wants=(Want("default"),), most=1)
    calls: list[Callable[[], Any]] = [
        lambda: engine.jobs.enqueue(new_jobs(1)),
        lambda: engine.jobs.claim(request),
        lambda: engine.jobs.settle([]),
        lambda: engine.jobs.promote(),
        lambda: engine.members.heartbeat(member),
    ]

    def refuse(jobs: Any, **options: Any) -> Any:
        raise full

    async with app.events() as events:
        facets.jobs.refusal = facets.members.refusal = full
        for call in calls:
            with pytest.raises(EngineFull):
                await call()
        if engine.blocking is not None:
            monkeypatch.setattr(engine.blocking._blocking, "enqueue", refuse)
            with pytest.raises(EngineFull):
                engine.blocking.enqueue(new_jobs(1))
        facets.jobs.refusal = None
        await engine.jobs.enqueue([job])
        [event] = await read(events, 1)
    assert event.job_id == job.id


async def begin_unheard(
    process: Process, turns: dict[str, asyncio.Event], calls: dict[str, Any]
) -> dict[str, "asyncio.Task[Any]"]:
    """Begin these calls just after a poll has found nobody; they wait for their turns."""
    emitter = process.engine.emitter
    await until(lambda: emitter.wanted and emitter._task is None)
    await process.engine.jobs.enqueue(new_jobs(1, queue="other"))
    await until(lambda: not emitter.wanted)
    turns.update((name, asyncio.Event()) for name in calls)
    tasks = {name: asyncio.create_task(call) for name, call in calls.items()}
    await asyncio.sleep(0)  # each runs up to where it is held
    assert not emitter.wanted
    return tasks


@pytest.mark.every_engine
@pytest.mark.row("C2")
async def test_a_change_by_a_call_that_began_before_anybody_listened_is_a_gap(
    app: Tidemill, open_process: Open
) -> None:
    """It was not asked to name what it moves, and it changes something while somebody listens."""
    process, turns = await a_held(open_process)
    jobs, new = process.engine.jobs, new_jobs(4)
    await jobs.enqueue([*new, *new_jobs(1, queue="other", delay=1)])
    done, back = await take(process, most=2)
    request = ClaimRequest(member=b"m" * 16, claimant=b"c" * 16, number=2, wants=(Want("default"),), most=1)
    settlement = Settlement(id=done.id, fence=done.fence, outcome=Completed())
    calls = {
        "cancel": jobs.cancel([new[3].id]),
        "settle": jobs.settle([settlement]),
        "release": jobs.release([Release(id=back.id, fence=back.fence)]),
        "claim": jobs.claim(request),
        "promote": jobs.promote(),
        "replay": jobs.replay([new[3].id], token=new_id()),
        "retire": jobs.retire(b"c" * 16, []),
    }
    tasks = await begin_unheard(process, turns, calls)
    async with app.events() as events:
        for name, task in tasks.items():
            turns[name].set()
            await task
            assert await read_until(events, bool) == [Gap("lost")], name


@pytest.mark.row("C2")
async def test_a_call_that_changed_nothing_is_no_gap_whenever_it_began(
    app: Tidemill, open_process: Open
) -> None:
    """And a heartbeat, whose answer does not show it, names what it gave back."""
    process, turns = await a_held(open_process)
    jobs, [job, last] = process.engine.jobs, new_jobs(2)
    await jobs.enqueue([job])
    [run] = await take(process)
    stale, unknown = run.fence + 1, new_id()
    request = ClaimRequest(member=b"m" * 16, claimant=b"d" * 16, number=1, wants=(Want("default"),), most=1)
    member = MemberInfo(id=b"m" * 16, name="host:1", lease=HOUR)
    claimant = ClaimantHeartbeat(claimant=b"c" * 16, answered_through=1, held=())
    calls = {
        "cancel": jobs.cancel([unknown]),
        "settle": jobs.settle([Settlement(id=job.id, fence=stale, outcome=Completed())]),
        "release": jobs.release([Release(id=job.id, fence=stale)]),
        "claim": jobs.claim(request),
        "promote": jobs.promote(),
        "replay": jobs.replay([unknown], token=new_id()),
        "drop": jobs.drop([unknown]),
        "retire": jobs.retire(b"d" * 16, []),
        "heartbeat": process.engine.members.heartbeat(member, [claimant]),
    }
    tasks = await begin_unheard(process, turns, calls)
    async with app.events() as events:
        for name, task in tasks.items():
            turns[name].set()
            await task
        await jobs.enqueue([last])
        found = await read(events, 2)
    assert [(event.job_id, event.state) for event in found] == [(job.id, "ready"), (last.id, "ready")]
