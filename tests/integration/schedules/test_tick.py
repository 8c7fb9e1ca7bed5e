"""The tick that fires schedules, on real engines, with a clock moved by hand."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tests.integration.schedules.terms import Trusted
from tidemill.app.operating import schedule_actions
from tidemill.controller.ticks import schedules
from tidemill.controller.ticks.schedules import FIRE_LIMIT, ScheduleTick
from tidemill.engine.protocol import Engine, Fired
from tidemill.model.errors import BadInput, EngineUnavailable, Refused
from tidemill.model.jobs.job import JobRecord, JobState
from tidemill.model.jobs.run import Completed, Crashed
from tidemill.model.member import MemberInfo
from tidemill.model.schedules.firing import then_of
from tidemill.model.schedules.schedule import PROGRAM, Cron, Every, Schedule, Startup, tick_id
from tidemill.model.time import HOUR, MINUTE, SECOND
from tidemill.testing.contract.fixtures import START, Claimant, Clock, Connect, a_job, completed, settlement

SECONDLY = Cron(fields="* * * * * *")
TERM = Trusted()


def a_schedule(name: str = "s", **options: Any) -> Schedule:
    return Schedule(
        **{"name": name, "timing": Cron(fields="* * * * *"), "job": a_job(), "next_at": START, **options}
    )


async def only(engine: Engine) -> Schedule:
    (schedule,) = await engine.schedules.list()
    return schedule


async def job_at(engine: Engine, tick: int, name: str = "s") -> JobRecord | None:
    (job,) = await engine.inspect.get([tick_id(name, tick)])
    return job


async def live_jobs(engine: Engine, clock: Clock) -> int:
    counts = await engine.inspect.counts(now=clock.now)
    return sum(each.blocked + each.scheduled + each.ready + each.running for each in counts)


async def put(engine: Engine, clock: Clock, *schedules: Schedule) -> None:
    await engine.schedules.put(schedules, now=clock.now)


async def test_a_due_tick_becomes_a_job_and_the_next_poll_is_at_the_next(
    engine: Engine, clock: Clock
) -> None:
    tick = ScheduleTick(clock=clock)
    await put(engine, clock, a_schedule())
    assert await tick.run(engine, TERM) == 1.0  # the next minute is far: as usual
    job = await job_at(engine, START)
    assert job is not None
    assert (job.state, job.schedule) == (JobState.READY, "s")
    assert (await only(engine)).next_at == START + MINUTE
    clock.forward(59.75)
    wait_s = await tick.run(engine, TERM)
    assert wait_s is not None
    assert 0.0 <= wait_s <= 0.25  # exactly then, less what this run took
    assert await live_jobs(engine, clock) == 1


@pytest.mark.every_engine
@pytest.mark.row("B2", "D4")
async def test_several_controllers_at_once_make_one_job_per_tick(connect: Connect, clock: Clock) -> None:
    engines = [await connect() for _ in range(3)]
    names = [f"s{number}" for number in range(10)]
    await put(engines[0], clock, *(a_schedule(name, timing=SECONDLY, overlap="allow") for name in names))
    ticks = [ScheduleTick(clock=clock) for _ in engines]
    for _ in range(5):
        await asyncio.gather(*(tick.run(engine, TERM) for tick, engine in zip(ticks, engines, strict=True)))
        clock.forward(1)
    assert await live_jobs(engines[0], clock) == 5 * len(names)
    ids = [tick_id(name, START + number * SECOND) for name in names for number in range(5)]
    assert None not in await engines[0].inspect.get(ids)


async def test_a_run_is_bounded_and_says_that_there_is_more(engine: Engine, clock: Clock) -> None:
    await put(engine, clock, *(a_schedule(f"s{number}") for number in range(FIRE_LIMIT + 5)))
    tick = ScheduleTick(clock=clock)
    assert await tick.run(engine, TERM) == 0
    assert await live_jobs(engine, clock) == FIRE_LIMIT
    assert await tick.run(engine, TERM) == 1.0
    assert await live_jobs(engine, clock) == FIRE_LIMIT + 5


@pytest.mark.every_engine
async def test_nothing_is_fired_when_the_term_is_over(engine: Engine, clock: Clock) -> None:
    term = Trusted()
    term.over = True
    await put(engine, clock, a_schedule())
    await ScheduleTick(clock=clock).run(engine, term)
    assert (await only(engine)).next_at == START


async def test_one_that_cannot_be_fired_does_not_stop_the_others(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A template that an older version has stored and this one refuses, say."""
    await put(engine, clock, a_schedule("bad", next_at=START - 1), a_schedule("good"))
    fire = engine.schedules.fire

    async def refuse(name: str, **said: Any) -> Fired | None:
        if name == "bad":
            raise BadInput("what a template")
        return await fire(name, **said)

    monkeypatch.setattr(engine.schedules, "fire", refuse)
    tick = ScheduleTick(clock=clock)
    for _ in range(2):
        await tick.run(engine, TERM)
    assert await job_at(engine, START, "good") is not None
    assert [record.message for record in caplog.records if record.levelname == "ERROR"] == [
        "the schedule bad cannot be fired: what a template"
    ]


@pytest.mark.row("D4")
async def test_paused_and_retired_ones_do_not_fire(engine: Engine, clock: Clock) -> None:
    await put(engine, clock, a_schedule("paused"), a_schedule("retired"))
    await engine.schedules.pause("paused", paused=True, now=clock.now)
    await engine.schedules.retire("retired", retired=True, now=clock.now)
    assert await ScheduleTick(clock=clock).run(engine, TERM) == 1.0
    assert await live_jobs(engine, clock) == 0


@pytest.mark.every_engine
@pytest.mark.row("D4")
async def test_overlap(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    tick = ScheduleTick(clock=clock)
    overlaps: Sequence[Any] = ("skip", "queue", "allow")
    await put(engine, clock, *(a_schedule(each, timing=SECONDLY, overlap=each) for each in overlaps))
    await tick.run(engine, TERM)
    running = await claimant.take()
    assert len(running) == 3
    clock.forward(1)
    await tick.run(engine, TERM)
    found = [await job_at(engine, START + SECOND, each) for each in overlaps]
    assert [job and job.state for job in found] == [None, JobState.BLOCKED, JobState.READY]
    await claimant.settle(*map(completed, running))
    assert (await job_at(engine, START + SECOND, "queue")).state is JobState.READY  # type: ignore[union-attr]
    clock.forward(1)
    await tick.run(engine, TERM)
    assert await job_at(engine, START + 2 * SECOND, "skip") is not None


@pytest.mark.row("D4")
@pytest.mark.parametrize("overlap", ["skip", "queue"])
async def test_overlap_after_missed_ticks(engine: Engine, clock: Clock, overlap: Any) -> None:
    """The job is that of the latest tick, not of the one that was due: the next tick asks for it."""
    tick = ScheduleTick(clock=clock)
    await put(engine, clock, a_schedule(timing=SECONDLY, overlap=overlap))
    clock.forward(5)
    await tick.run(engine, TERM)
    assert (await only(engine)).last_at == START + 5 * SECOND
    clock.forward(1)
    await tick.run(engine, TERM)
    first, second = [await job_at(engine, START + at * SECOND) for at in (5, 6)]
    assert first is not None
    assert (second and second.state) == (None if overlap == "skip" else JobState.BLOCKED)


@pytest.mark.every_engine
@pytest.mark.row("D4")
async def test_a_line_goes_on_in_order_whatever_becomes_of_those_in_it(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    """One that is cancelled, and even deleted, lets nobody start beside the one that runs."""
    tick = ScheduleTick(clock=clock)
    await put(engine, clock, a_schedule(timing=SECONDLY, overlap="queue"))
    await tick.run(engine, TERM)
    (running,) = await claimant.take()
    for _ in range(3):
        clock.forward(1)
        await tick.run(engine, TERM)
    first, second, third = [tick_id("s", START + at * SECOND) for at in (1, 2, 3)]
    await engine.jobs.cancel([third], now=clock.now)
    await engine.jobs.drop([third], now=clock.now)
    clock.forward(1)
    await tick.run(engine, TERM)
    last = tick_id("s", START + 4 * SECOND)
    assert (await only(engine)).line == (START, START + SECOND, START + 2 * SECOND)
    await engine.jobs.cancel([second], now=clock.now)
    assert await claimant.take() == [], "nobody runs beside the first"
    await claimant.complete(running)
    (next_run,) = await claimant.take()
    assert next_run.id == first
    await claimant.fail(next_run)
    (last_run,) = await claimant.take()
    assert last_run.id == last
    await claimant.complete(last_run)
    clock.forward(1)
    await tick.run(engine, TERM)
    assert (await only(engine)).line == (), "all before it have ended"


@pytest.mark.row("D4")
async def test_a_tick_that_finds_its_line_full_is_passed_over_and_logged(
    engine: Engine, clock: Clock, claimant: Claimant, caplog: pytest.LogCaptureFixture
) -> None:
    tick = ScheduleTick(clock=clock)
    await put(engine, clock, a_schedule(timing=SECONDLY, overlap="queue", waiting=2))
    await tick.run(engine, TERM)
    (running,) = await claimant.take()
    for _ in range(5):
        clock.forward(1)
        await tick.run(engine, TERM)
    assert await live_jobs(engine, clock) == 3, "one runs, two wait"
    said = [record.message for record in caplog.records if record.levelname == "WARNING"]
    assert said == ["passed over a tick of s, of which 2 jobs wait already (waiting=)"] * 3
    assert (await only(engine)).last_at == START + 2 * SECOND
    with pytest.raises(Refused, match="2 jobs of 's' wait already"):
        await schedule_actions.run_now(engine, "s")
    await claimant.complete(running)
    clock.forward(1)
    await tick.run(engine, TERM)
    assert await job_at(engine, START + 6 * SECOND) is not None, "there is room again"


# What is kept


async def ticks_with_jobs(engine: Engine, most: int = 40) -> list[int]:
    """Seconds after `START`."""
    found = await engine.inspect.get([tick_id("s", START + number * SECOND) for number in range(most)])
    return [number for number, job in enumerate(found) if job is not None]


@pytest.mark.every_engine
async def test_the_jobs_of_the_last_ticks_are_kept(
    connect: Connect, clock: Clock, claimant: Claimant
) -> None:
    """By two controllers at once; a run that somebody asks for counts as well."""
    engines = [await connect() for _ in range(2)]
    ticks = [ScheduleTick(clock=clock) for _ in engines]
    engine = engines[0]

    async def fire() -> None:
        await asyncio.gather(*(tick.run(engine, TERM) for tick, engine in zip(ticks, engines, strict=True)))

    async def fire_and_complete(times: int) -> None:
        for _ in range(times):
            await fire()
            await claimant.complete(await claimant.take_one())
            clock.forward(1)

    await put(engine, clock, a_schedule(timing=SECONDLY, keep=3))
    await fire_and_complete(6)
    assert await ticks_with_jobs(engine) == [2, 3, 4, 5], "three, and the last one"
    asked = await schedule_actions.run_now(engine, "s")
    await claimant.complete(await claimant.take_one())
    await fire_and_complete(1)
    assert await ticks_with_jobs(engine) == [4, 5, 6]
    assert await engine.inspect.get([asked]) != [None]
    await put(engine, clock, a_schedule(timing=SECONDLY, keep=0))
    await fire_and_complete(1)
    assert await ticks_with_jobs(engine) == [7], "it keeps less from the next tick on"
    assert await engine.inspect.get([asked]) == [None]
    await put(engine, clock, a_schedule(timing=SECONDLY))
    await fire_and_complete(3)
    assert await ticks_with_jobs(engine) == [7, 8, 9, 10], "as the queue says"
    assert await engine.inspect.audit() == [], "as with retention"


async def test_what_has_not_ended_and_what_died_is_not_dropped(
    engine: Engine, clock: Clock, claimant: Claimant, monkeypatch: pytest.MonkeyPatch
) -> None:
    tick = ScheduleTick(clock=clock)
    await put(engine, clock, a_schedule(timing=SECONDLY, overlap="allow", keep=0))

    async def fire() -> JobRecord:
        await tick.run(engine, TERM)
        (job,) = await engine.inspect.get([(await only(engine)).last_job or b""])
        assert job is not None
        clock.forward(1)
        return job

    await fire()
    running = await claimant.take_one()
    await fire()
    await claimant.fail(await claimant.take_one())
    cancelled = await fire()
    await engine.jobs.cancel([cancelled.id], now=clock.now)
    drop = engine.jobs.drop

    async def no_drop(*_: Any, **__: Any) -> list[Any]:
        raise EngineUnavailable("in this moment")

    monkeypatch.setattr(engine.jobs, "drop", no_drop)
    with pytest.raises(EngineUnavailable):
        await fire()
    clock.forward(1)
    assert await ticks_with_jobs(engine) == [0, 1, 2, 3]
    monkeypatch.setattr(engine.jobs, "drop", drop)
    await fire()
    assert await ticks_with_jobs(engine) == [0, 1, 3, 4], "what was not dropped is found again"
    await claimant.complete(running)
    await fire()
    assert await ticks_with_jobs(engine) == [1, 3, 4, 5]
    assert START + SECOND not in (await only(engine)).kept, "a dead letter is the queue's business"


# Intervals


@pytest.mark.every_engine
@pytest.mark.row("D4")
async def test_an_interval_counts_from_the_end_of_the_last_run(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    tick = ScheduleTick(clock=clock)
    await put(engine, clock, a_schedule(timing=Every(seconds=3)))
    wait_s = await tick.run(engine, TERM)
    assert wait_s is not None
    assert wait_s <= 1.5  # it checks before the next time can be due
    run = await claimant.take_one()
    clock.forward(10)  # a long run
    await tick.run(engine, TERM)
    assert await live_jobs(engine, clock) == 1
    then = then_of("s", run.headers, Completed())
    await claimant.settle(completed(run, then=then))
    assert (await only(engine)).next_at == clock.now + 3 * SECOND
    clock.forward(3)
    await tick.run(engine, TERM)
    assert await live_jobs(engine, clock) == 1


@pytest.mark.every_engine
@pytest.mark.row("D4")
@pytest.mark.parametrize("end", ["cancelled", "dropped", "expired", "crashed", "settled without a word"])
async def test_an_interval_survives_every_end_of_its_job(
    engine: Engine, clock: Clock, claimant: Claimant, end: str
) -> None:
    """Whatever became of the run, the next one comes: one interval after its end, as far as that is known."""
    tick = ScheduleTick(clock=clock)
    template = a_job(expires=5 * SECOND, attempts=1)
    await put(engine, clock, a_schedule(timing=Every(seconds=30), job=template))
    await tick.run(engine, TERM)
    job_id = tick_id("s", START)
    match end:
        case "cancelled" | "dropped":
            await engine.jobs.cancel([job_id], now=clock.now)
            if end == "dropped":
                await engine.jobs.drop([job_id], now=clock.now)
        case "expired":
            clock.forward(6)
            await engine.jobs.promote(now=clock.now)
        case "crashed":
            for _ in range(3):
                run = await claimant.take_one(suspects=1)
                await claimant.settle(settlement(run, Crashed()))
        case _:
            await claimant.complete(await claimant.take_one())
    job = await job_at(engine, START)
    assert job is None or job.ended_at is not None
    ended_at = START if job is None or job.ended_at is None else job.ended_at
    await tick.run(engine, TERM)
    assert (await only(engine)).next_at == ended_at + 30 * SECOND
    clock.now = ended_at + 30 * SECOND
    await tick.run(engine, TERM)
    assert await live_jobs(engine, clock) == 1


@pytest.mark.every_engine
@pytest.mark.row("D4")
async def test_an_interval_never_runs_twice_at_once(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    """A next time that was set although a run is under way (by the replay of an older one, say)."""
    tick = ScheduleTick(clock=clock)
    await put(engine, clock, a_schedule(timing=Every(seconds=3)))
    await tick.run(engine, TERM)
    await claimant.take_one()
    assert await engine.schedules.fire(
        "s", tick=None, before=START, next_at=clock.now + SECOND, jobs=(), now=clock.now
    )
    clock.forward(2)
    await tick.run(engine, TERM)
    assert await live_jobs(engine, clock) == 1
    assert (await only(engine)).next_at is None


@pytest.mark.row("D4")
@pytest.mark.parametrize("changed", [Every(seconds=60), Cron(fields="*/30 * * * * *")])
async def test_the_end_of_an_old_run_does_not_delay_a_changed_schedule(
    engine: Engine, clock: Clock, claimant: Claimant, changed: Every | Cron
) -> None:
    """A deploy makes a minute of a day while a run is under way: its end says "in a day"."""
    tick = ScheduleTick(clock=clock)
    await put(engine, clock, a_schedule(timing=Every(seconds=86_400)))
    await tick.run(engine, TERM)
    run = await claimant.take_one()
    await put(engine, clock, a_schedule(timing=changed, next_at=START + 30 * SECOND))
    clock.forward(1)
    await claimant.settle(completed(run, then=then_of("s", run.headers, Completed())))
    for _ in range(2):
        await tick.run(engine, TERM)
        assert (await only(engine)).next_at == START + 30 * SECOND


@pytest.mark.row("D4")
async def test_the_end_of_a_run_under_a_schedule_of_another_job_is_found(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    """The interval stays, but its job is another one: the end of the run sets nothing, and the controller
    sees it."""
    tick = ScheduleTick(clock=clock)
    await put(engine, clock, a_schedule(timing=Every(seconds=60)))
    await tick.run(engine, TERM)
    run = await claimant.take_one()
    await put(engine, clock, a_schedule(timing=Every(seconds=60), job=a_job(priority=1), next_at=START))
    clock.forward(5)
    await claimant.settle(completed(run, then=then_of("s", run.headers, Completed())))
    assert (await only(engine)).next_at is None
    clock.forward(1)
    await tick.run(engine, TERM)
    assert (await only(engine)).next_at == START + 65 * SECOND


class ChangedInBetween:
    """An engine on which a deploy changes the schedule right before it is fired."""

    def __init__(self, engine: Engine, change: Schedule, clock: Clock) -> None:
        self._engine, self._change, self._clock = engine, change, clock
        self.schedules = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name, None) or getattr(self._engine.schedules, name)

    async def list(self) -> Any:
        return await self._engine.schedules.list()

    async def fire(self, *args: Any, **said: Any) -> Any:
        await put(self._engine, self._clock, self._change)
        return await self._engine.schedules.fire(*args, **said)


@pytest.mark.row("D4")
async def test_a_schedule_that_changes_while_it_is_fired_keeps_its_new_time(
    engine: Engine, clock: Clock
) -> None:
    """The next tick is the same under both timings; what follows it is not."""
    daily, secondly = Cron(fields="0 0 * * *"), Cron(fields="* * * * * *")
    await put(engine, clock, a_schedule(timing=daily, next_at=clock.now))
    changed = a_schedule(timing=secondly, next_at=clock.now)
    await ScheduleTick(clock=clock).run(ChangedInBetween(engine, changed, clock), TERM)
    assert (await only(engine)).next_at == clock.now
    await ScheduleTick(clock=clock).run(engine, TERM)
    assert (await only(engine)).next_at == clock.now + SECOND


async def test_many_that_cannot_be_fired_do_not_fill_the_run(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedules, "FIRE_LIMIT", 3)
    bad = [f"bad{number}" for number in range(4)]
    await put(engine, clock, *(a_schedule(name, next_at=START - 1) for name in bad), a_schedule("good"))
    fire, tried = engine.schedules.fire, Counter[str]()

    async def refuse(name: str, **said: Any) -> Fired | None:
        tried[name] += 1
        if name in bad:
            raise BadInput("what a template")
        return await fire(name, **said)

    monkeypatch.setattr(engine.schedules, "fire", refuse)
    tick = ScheduleTick(clock=clock)
    assert await tick.run(engine, TERM) == 0
    for _ in range(3):
        assert await tick.run(engine, TERM) == 1.0  # it does not spin
    assert await job_at(engine, START, "good") is not None
    assert tried == dict.fromkeys([*bad, "good"], 1)
    clock.forward(70)
    await tick.run(engine, TERM)
    assert tried.total() == 8  # but they are not given up


async def test_every_interval_under_way_has_its_turn(
    engine: Engine, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"s{number}" for number in range(7)]
    await put(engine, clock, *(a_schedule(name, timing=Every(seconds=30)) for name in names))
    tick, term = ScheduleTick(clock=clock), Trusted()
    await tick.run(engine, term)
    await engine.jobs.cancel([tick_id(name, START) for name in names], now=clock.now)
    monkeypatch.setattr(schedules, "FIRE_LIMIT", 3)

    async def without_time() -> int:
        await tick.run(engine, term)
        return sum(each.next_at is None for each in await engine.schedules.list())

    term.over = True
    assert await without_time() == 7
    term.over = False
    assert [await without_time() for _ in range(4)] == [4, 1, 0, 0]


# Start-ups and retirement


def a_member(number: int, *, app: str = "shop:app", schedules: tuple[str, ...] | None = ()) -> MemberInfo:
    return MemberInfo(
        id=number.to_bytes(16, "big"), name=f"h:{number}", slots=1, app=app, schedules=schedules
    )


@pytest.mark.every_engine
@pytest.mark.row("D4")
async def test_a_startup_runs_once_for_every_start_of_the_cluster(connect: Connect, clock: Clock) -> None:
    one, two = await connect(), await connect()
    startup = a_schedule("up", timing=Startup(), next_at=None, source="shop:app", overlap="allow")
    ticks = {engine: ScheduleTick(clock=clock, census=0) for engine in (one, two)}

    async def jobs_after_runs() -> int:
        """Both controllers run the tick. Returns how many jobs there are."""
        await asyncio.gather(*(tick.run(engine, TERM) for engine, tick in ticks.items()))
        await asyncio.gather(*(tick.run(engine, TERM) for engine, tick in ticks.items()))
        clock.forward(1)
        return await live_jobs(one, clock)

    async def heartbeat(*numbers: int) -> None:
        for number in numbers:
            await one.members.heartbeat(a_member(number, schedules=("up",)), now=clock.now)

    await put(one, clock, startup)
    assert await jobs_after_runs() == 0  # nobody is there to run it
    await heartbeat(1)
    assert await jobs_after_runs() == 1
    await heartbeat(1, 2)
    assert await jobs_after_runs() == 1  # another worker joins
    await one.members.leave(a_member(1).id, now=clock.now)
    await heartbeat(2)
    assert await jobs_after_runs() == 1  # and takes over
    await one.members.leave(a_member(2).id, now=clock.now)
    assert await jobs_after_runs() == 1
    await heartbeat(3)
    assert await jobs_after_runs() == 2  # the cluster was down, and has started again
    clock.forward(3)  # killed, and at once started again: its lease has to run out first
    await heartbeat(4)
    assert await jobs_after_runs() == 2
    for _ in range(5):
        clock.forward(2)
        await heartbeat(4)
    assert await jobs_after_runs() == 3
    await put(one, clock, a_schedule("new", timing=Startup(), next_at=None))
    await heartbeat(4)
    assert await jobs_after_runs() == 4  # a deploy adds one: it runs when it appears
    assert await jobs_after_runs() == 4


@pytest.mark.row("D4")
async def test_a_deploy_that_removes_a_schedule_retires_it(engine: Engine, clock: Clock) -> None:
    tick = ScheduleTick(clock=clock, census=0, grace=5 * SECOND)
    declared = a_schedule("gone", source="shop:app", declared_at=1, next_at=START + MINUTE)
    other = a_schedule("other", source="admin:app", declared_at=1, next_at=START + MINUTE)
    own = a_schedule("by-hand", next_at=START + MINUTE)
    nameless = a_schedule("nameless", source=PROGRAM, declared_at=1, next_at=START + HOUR)
    await put(engine, clock, declared, other, own, nameless)

    async def retired(*members: MemberInfo) -> list[str]:
        """What is retired after these have been the only ones for a while."""
        for _ in range(4):
            for member in members:
                await engine.members.heartbeat(member, now=clock.now)
            await tick.run(engine, TERM)
            clock.forward(2)
        for member in members:
            await engine.members.leave(member.id, now=clock.now)
        return [each.name for each in await engine.schedules.list() if each.retired_at is not None]

    old, new = a_member(1, schedules=("gone", "x")), a_member(2, schedules=("x",))
    assert await retired() == []  # nobody is there: nothing can be said
    assert await retired(old) == []
    assert await retired(old, new) == []  # in the middle of a deploy it goes on
    assert await retired(new, a_member(3, schedules=None)) == []  # one has not loaded its code yet
    assert await retired(a_member(4, app="admin:app", schedules=("other",))) == []  # another app's workers
    assert await retired(a_member(5, app=PROGRAM)) == []  # another program without a name
    loading = a_member(6, app="admin:app", schedules=None)  # of another app: its code may never load
    assert await retired(new, loading) == ["gone"]
    assert await retired(new) == ["gone"]
    (gone,) = [each for each in await engine.schedules.list() if each.name == "gone"]
    assert gone.next_at == START + MINUTE
    clock.forward(90)
    assert await retired(old) == []  # the deploy is taken back; what was due meanwhile was not missed
    (gone,) = [each for each in await engine.schedules.list() if each.name == "gone"]
    assert gone.next_at is not None
    assert gone.next_at > clock.now
    assert await job_at(engine, START + 2 * MINUTE, "gone") is None
    audit = [(entry.by, entry.action, entry.target) for entry in await engine.inspect.audit()]
    assert audit == [
        ("controller", "bring back schedule", "gone"),
        ("controller", "retire schedule", "gone"),
    ]
