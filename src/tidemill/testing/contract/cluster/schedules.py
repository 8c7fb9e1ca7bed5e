"""`schedules`: kept by name, fired once per tick."""

import asyncio
from typing import Any

import msgspec
import pytest

from tidemill.engine.protocol import Engine, Fired
from tidemill.model.errors import BadInput
from tidemill.model.jobs.job import JobState, NewJob, Stored
from tidemill.model.jobs.retry import Retry
from tidemill.model.schedules.schedule import Cron, Every, Schedule, tick_id
from tidemill.model.time import MINUTE, SECOND, Instant
from tidemill.testing.contract.fixtures import START, Clock, Connect, a_job, snapshot, states_of

TEMPLATE = a_job(schedule="s")


def a_schedule(name: str = "s", **options: Any) -> Schedule:
    return Schedule(**{"name": name, "timing": Every(seconds=60), "job": TEMPLATE, **options})


def job_at(tick: Instant, name: str = "s") -> NewJob:
    return a_job(id=tick_id(name, tick), schedule=name)


async def only(engine: Engine) -> Schedule:
    (schedule,) = await engine.schedules.list()
    return schedule


async def test_everything_is_kept(engine: Engine, clock: Clock) -> None:
    job = a_job(priority=2, body=b"\x00[1]", key="k", retry=Retry(attempts=2), timeout=SECOND, headers=b"{}")
    schedule = Schedule(
        name="nightly",
        timing=Cron(fields="0 3 * * sun", tz="Europe/Berlin", jitter=2.5, start=START, end=START + MINUTE),
        job=job,
        missed="all",
        overlap="queue",
        waiting=7,
        keep=0,
        source="shop:app",
        declared_at=START,
        next_at=9,
    )
    await engine.schedules.put([schedule], now=clock.now)
    stored = await only(engine)
    replace = msgspec.structs.replace
    template = replace(stored.job, id=job.id)  # the id of a template is ignored
    assert replace(stored, version=0, job=template) == schedule


async def test_schedules_are_listed_by_name(engine: Engine, clock: Clock) -> None:
    await engine.schedules.put([a_schedule(name) for name in ("b", "c", "a")], now=clock.now)
    assert [schedule.name for schedule in await engine.schedules.list()] == ["a", "b", "c"]


async def test_put_again_keeps_what_has_happened(engine: Engine, clock: Clock) -> None:
    await engine.schedules.put([a_schedule(next_at=100)], now=clock.now)
    await engine.schedules.fire(
        "s", tick=100, before=None, next_at=200, jobs=[job_at(100)], last_at=100, now=clock.now
    )
    await engine.schedules.pause("s", paused=True, now=clock.now)
    version = (await only(engine)).version
    await engine.schedules.put([a_schedule(next_at=7, missed="skip")], now=clock.now)
    stored = await only(engine)
    assert (stored.last_at, stored.paused, stored.next_at, stored.missed) == (100, True, 200, "skip")
    assert stored.version > version


async def test_a_new_timing_brings_its_own_next_time(engine: Engine, clock: Clock) -> None:
    await engine.schedules.put([a_schedule(next_at=100)], now=clock.now)
    await engine.schedules.fire(
        "s", tick=100, before=None, next_at=200, jobs=[job_at(100)], last_at=100, now=clock.now
    )
    await engine.schedules.put([a_schedule(next_at=7, timing=Every(seconds=61))], now=clock.now)
    stored = await only(engine)
    assert (stored.last_at, stored.next_at) == (100, 7)


async def test_the_version_grows_only_with_a_change(engine: Engine, clock: Clock) -> None:
    versions = []
    changes: tuple[dict[str, Any], ...] = (
        {},
        {},
        {"next_at": 99},
        {"missed": "all"},
        {"timing": Every(seconds=61)},
        {"job": msgspec.structs.replace(TEMPLATE, priority=1)},
        {"overlap": "allow"},
        {"waiting": 3},
        {"keep": 0},
        {"keep": 7},
        {"source": "shop:app"},
        {"declared_at": 9},
    )
    said: dict[str, Any] = {"next_at": 5}
    for change in changes:
        said |= change
        await engine.schedules.put([a_schedule(**said)], now=clock.now)
        versions.append((await only(engine)).version)
    first = versions[0]
    assert versions == [first + grown for grown in (0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 8)]


@pytest.mark.row("D4")
async def test_older_code_does_not_undo_what_newer_code_says(engine: Engine, clock: Clock) -> None:
    """A worker of yesterday's release whose process is restarted in the middle of a deploy."""
    new = a_schedule(source="shop:app", declared_at=20, timing=Every(seconds=9), next_at=5)
    old = a_schedule(source="shop:app", declared_at=10, timing=Every(seconds=7), next_at=6, missed="all")
    for said in (old, new, old):
        await engine.schedules.put([said], now=clock.now)
    stored = await only(engine)
    assert (stored.timing, stored.missed, stored.next_at, stored.declared_at) == (new.timing, "once", 5, 20)
    await engine.schedules.put([msgspec.structs.replace(old, declared_at=20)], now=clock.now)
    assert (await only(engine)).timing == old.timing
    await engine.schedules.put([a_schedule()], now=clock.now)  # made at run time: no code is asked
    assert (await only(engine)).source == ""


async def test_a_retired_schedule_does_not_fire_until_it_is_declared_again(
    engine: Engine, clock: Clock
) -> None:
    declared = a_schedule(source="shop:app", declared_at=1, next_at=100)
    await engine.schedules.put([declared], now=clock.now)
    for _ in range(2):
        assert await engine.schedules.retire("s", retired=True, now=clock.now)
        clock.forward(1)
    stored = await only(engine)
    assert (stored.retired_at, stored.fires, stored.next_at) == (START, False, 100)
    for requested in (False, True):
        assert not await engine.schedules.fire(
            "s",
            tick=100,
            before=None,
            next_at=200,
            jobs=[job_at(100)],
            last_at=100,
            requested=requested,
            now=clock.now,
        )
    await engine.schedules.put([msgspec.structs.replace(declared, next_at=300)], now=clock.now)
    back = await only(engine)
    assert (back.retired_at, back.next_at, back.version) == (None, 300, stored.version)
    await engine.schedules.retire("s", retired=True, now=clock.now)
    assert await engine.schedules.retire("s", retired=False, now=clock.now)
    assert (await only(engine)).next_at == 300
    for next_at in (400, None):
        await engine.schedules.retire("s", retired=True, now=clock.now)
        for said in (next_at, 500):  # the second changes nothing: it is back already
            await engine.schedules.retire("s", retired=False, next_at=said, now=clock.now)
        assert (await only(engine)).next_at == next_at
    assert not await engine.schedules.retire("nothing", retired=True, now=clock.now)


async def test_firing_advances_and_inserts(engine: Engine, clock: Clock) -> None:
    await engine.schedules.put([a_schedule(next_at=100)], now=clock.now)
    jobs = [job_at(160), a_job(delay=SECOND)]  # the last of several ticks that were missed
    assert await engine.schedules.fire(
        "s", tick=100, before=None, next_at=200, jobs=jobs, last_at=160, now=clock.now
    )
    stored = await only(engine)
    assert (stored.last_at, stored.next_at, stored.last_job) == (160, 200, jobs[0].id)
    assert await states_of(engine, jobs) == [JobState.READY, JobState.SCHEDULED]


async def test_a_tick_may_be_passed_over(engine: Engine, clock: Clock) -> None:
    await engine.schedules.put([a_schedule(next_at=100)], now=clock.now)
    await engine.schedules.fire(
        "s", tick=100, before=None, next_at=200, jobs=[job_at(100)], last_at=100, now=clock.now
    )
    assert await engine.schedules.fire("s", tick=200, before=100, next_at=300, jobs=[], now=clock.now)
    stored = await only(engine)
    assert (stored.last_at, stored.next_at, stored.last_job) == (100, 300, job_at(100).id)


@pytest.mark.row("D4")
async def test_a_next_time_that_nobody_set_is_set_once(engine: Engine, clock: Clock) -> None:
    await engine.schedules.put([a_schedule(next_at=100)], now=clock.now)
    await engine.schedules.fire(
        "s", tick=100, before=None, next_at=None, jobs=[job_at(100)], last_at=100, now=clock.now
    )
    assert await engine.schedules.fire("s", tick=None, before=100, next_at=300, jobs=[], now=clock.now)
    assert not await engine.schedules.fire("s", tick=None, before=100, next_at=400, jobs=[], now=clock.now)
    stored = await only(engine)
    assert (stored.last_at, stored.next_at) == (100, 300)


async def test_nothing_fires_by_another_version(engine: Engine, clock: Clock) -> None:
    await engine.schedules.put([a_schedule(next_at=100)], now=clock.now)
    read = await only(engine)
    await engine.schedules.put([a_schedule(next_at=100, timing=Every(seconds=61))], now=clock.now)
    changed = await only(engine)
    before = await snapshot(engine, clock)
    for version, fires in ((read.version, False), (changed.version, True)):
        fired = await engine.schedules.fire(
            "s", tick=100, before=None, next_at=200, jobs=[], version=version, now=clock.now
        )
        assert (fired is not None) == fires
        if not fires:
            assert await snapshot(engine, clock) == before
    assert (await only(engine)).next_at == 200


async def test_a_next_time_of_another_version_is_not_set(engine: Engine, clock: Clock) -> None:
    declared = a_schedule(source="shop:app", next_at=100)
    await engine.schedules.put([declared], now=clock.now)
    old = (await only(engine)).version
    await engine.schedules.put([msgspec.structs.replace(declared, missed="all")], now=clock.now)
    new = (await only(engine)).version
    for version, next_at in ((old, 100), (new, 300)):
        await engine.schedules.pause("s", paused=True, now=clock.now)
        assert await engine.schedules.pause("s", paused=False, next_at=300, version=version, now=clock.now)
        stored = await only(engine)
        assert (stored.paused, stored.next_at) == (False, next_at)
    for version, kept in ((old, True), (new, False)):
        await engine.schedules.retire("s", retired=True, now=clock.now)
        assert await engine.schedules.retire("s", retired=False, next_at=None, version=version, now=clock.now)
        stored = await only(engine)
        assert (stored.retired_at, stored.next_at) == (None, 300 if kept else None)


@pytest.mark.parametrize("paused", [False, True])
async def test_a_run_that_was_asked_for_is_a_tick_of_its_own(
    engine: Engine, clock: Clock, paused: bool
) -> None:
    await engine.schedules.put([a_schedule(next_at=100)], now=clock.now)
    await engine.schedules.pause("s", paused=paused, now=clock.now)
    assert await engine.schedules.fire(
        "s",
        tick=100,
        before=None,
        next_at=100,
        jobs=[job_at(50)],
        last_at=50,
        requested=True,
        by="ann",
        now=clock.now,
    )
    (entry, *_) = await engine.inspect.audit()
    assert (entry.by, entry.action, entry.target) == ("ann", "run schedule", "s")
    stored = await only(engine)
    assert (stored.last_at, stored.next_at, stored.paused) == (50, 100, paused)
    assert await states_of(engine, [job_at(50)]) == [JobState.READY]
    assert not await engine.schedules.fire(
        "s", tick=99, before=50, next_at=100, jobs=[job_at(51)], last_at=51, requested=True, now=clock.now
    )


@pytest.mark.row("D4")
async def test_of_two_who_ask_for_a_run_at_once_one_gets_it(engine: Engine, clock: Clock) -> None:
    """Neither changes the next time: what tells the second one is that the last run is another."""
    for next_at in (None, 100):
        await engine.schedules.put([a_schedule("s", next_at=next_at)], now=clock.now)
        fired = await asyncio.gather(
            *(
                engine.schedules.fire(
                    "s",
                    tick=next_at,
                    before=None,
                    next_at=next_at,
                    jobs=[job_at(at)],
                    last_at=at,
                    requested=True,
                    now=clock.now,
                )
                for at in (50, 51)
            )
        )
        assert fired.count(None) == 1
        assert (await only(engine)).last_at == (51, 50)[fired.index(None)]
        await engine.schedules.remove("s", now=clock.now)


@pytest.mark.parametrize(
    "wrong", ["another tick", "another run", "a repeat", "paused", "unknown", "nothing due"]
)
async def test_who_comes_too_late_changes_nothing(engine: Engine, clock: Clock, wrong: str) -> None:
    await engine.schedules.put([a_schedule(next_at=None if wrong == "nothing due" else 100)], now=clock.now)
    name, tick, before = "s", 100, None
    match wrong:
        case "another run":
            before = 99
        case "another tick":
            tick = 99
        case "a repeat":
            assert await engine.schedules.fire(
                "s", tick=100, before=None, next_at=200, jobs=[], now=clock.now
            )
        case "paused":
            await engine.schedules.pause("s", paused=True, now=clock.now)
        case "unknown":
            name = "nothing"
    stored = await snapshot(engine, clock)
    assert not await engine.schedules.fire(
        name, tick=tick, before=before, next_at=300, jobs=[job_at(100)], last_at=100, now=clock.now
    )
    assert await snapshot(engine, clock) == stored


async def test_a_schedule_may_wait_for_the_end_of_its_run(engine: Engine, clock: Clock) -> None:
    await engine.schedules.put([a_schedule(next_at=100)], now=clock.now)
    assert await engine.schedules.fire(
        "s", tick=100, before=None, next_at=None, jobs=[job_at(100)], last_at=100, now=clock.now
    )
    assert (await only(engine)).next_at is None


@pytest.mark.row("B2", "D4")
@pytest.mark.row("C2")
async def test_a_firing_says_which_of_its_jobs_are_new(engine: Engine, clock: Clock) -> None:
    """The ids come from the ticks: a schedule that was removed and put again meets its old jobs."""
    await engine.schedules.put([a_schedule(next_at=100)], now=clock.now)
    first, second = job_at(100), job_at(200)
    await engine.jobs.enqueue([first], now=clock.now)
    child = msgspec.structs.replace(job_at(300), after=(second.id,))
    fired = await engine.schedules.fire(
        "s", tick=100, before=None, next_at=300, jobs=[first, second, child], last_at=300, now=clock.now
    )
    assert fired == Fired([Stored(first.id, False), Stored(second.id, True), Stored(child.id, True)])
    nothing = await engine.schedules.fire("s", tick=300, before=300, next_at=400, jobs=[], now=clock.now)
    assert nothing == Fired([])


@pytest.mark.row("D4")
async def test_a_line_is_kept_with_the_last_tick(engine: Engine, clock: Clock) -> None:
    async def fire(tick: Instant, before: Instant | None, **options: Any) -> Schedule:
        fired = await engine.schedules.fire(
            "s", tick=tick, before=before, next_at=tick + 100, now=clock.now, **options
        )
        assert fired is not None
        return await only(engine)

    await engine.schedules.put([a_schedule(next_at=100)], now=clock.now)
    assert (await only(engine)).line == ()
    stored = await fire(100, None, jobs=[job_at(100)], last_at=100, line=[1, 1 << 52])
    assert (stored.last_at, stored.line) == (100, (1, 1 << 52))
    stored = await fire(200, 100, jobs=[])
    assert (stored.last_at, stored.line) == (100, (1, 1 << 52)), "a tick that is passed over changes nothing"
    await engine.schedules.put([a_schedule(overlap="queue", waiting=3)], now=clock.now)
    await engine.schedules.put([a_schedule(overlap="queue", waiting=3)], now=clock.now)
    stored = await only(engine)
    assert (stored.last_at, stored.line, stored.waiting) == (100, (1, 1 << 52), 3)
    stored = await fire(300, 100, jobs=[job_at(300)], last_at=300)
    assert (stored.last_at, stored.line) == (300, ())


async def test_the_ticks_that_are_kept_are_stored_with_the_last_one(engine: Engine, clock: Clock) -> None:
    async def fire(tick: Instant, before: Instant | None, **options: Any) -> Schedule:
        fired = await engine.schedules.fire(
            "s", tick=tick, before=before, next_at=tick + 100, now=clock.now, **options
        )
        assert fired is not None
        return await only(engine)

    await engine.schedules.put([a_schedule(next_at=100, keep=2)], now=clock.now)
    assert (await only(engine)).kept == ()
    many = tuple((1 << 52) + number for number in range(1_200))
    stored = await fire(100, None, jobs=[job_at(100)], last_at=100, kept=many)
    assert (stored.kept, stored.line) == (many, ())
    stored = await fire(200, 100, jobs=[])
    assert stored.kept == many, "a tick that is passed over changes nothing"
    assert not await engine.schedules.fire(
        "s", tick=200, before=100, next_at=400, jobs=[], last_at=200, kept=[1], now=clock.now
    )
    assert (await only(engine)).kept == many, "nor does one that comes too late"
    await engine.schedules.put([a_schedule()], now=clock.now)
    stored = await only(engine)
    assert (stored.keep, stored.kept) == (None, many), "what has happened stays"
    stored = await fire(300, 100, jobs=[job_at(300)], last_at=300)
    assert stored.kept == ()


async def test_two_controllers_fire_a_tick_once(connect: Connect, clock: Clock) -> None:
    clients = [await connect() for _ in range(3)]
    await clients[0].schedules.put([a_schedule(next_at=0)], now=clock.now)

    async def fire(engine: Engine, tick: Instant) -> Fired | None:
        jobs, before = [job_at(tick)], tick - 60 if tick else None
        return await engine.schedules.fire(
            "s", tick=tick, before=before, next_at=tick + 60, jobs=jobs, last_at=tick, now=clock.now
        )

    for tick in range(0, 300, 60):
        fired = await asyncio.gather(*(fire(client, tick) for client in clients for _ in range(2)))
        assert fired.count(Fired([Stored(job_at(tick).id, True)])) == 1
        assert fired.count(None) == 5
    (counts,) = await clients[0].inspect.counts(now=clock.now)
    assert counts.ready == 5


async def test_a_bad_job_stops_the_whole_firing(engine: Engine, clock: Clock) -> None:
    await engine.schedules.put([a_schedule(next_at=100)], now=clock.now)
    before = await snapshot(engine, clock)
    with pytest.raises(BadInput):
        await engine.schedules.fire(
            "s",
            tick=100,
            before=None,
            next_at=200,
            jobs=[job_at(100), a_job(priority=11)],
            last_at=100,
            now=clock.now,
        )
    assert await snapshot(engine, clock) == before


async def test_pause_and_resume(engine: Engine, clock: Clock) -> None:
    await engine.schedules.put([a_schedule(next_at=100)], now=clock.now)
    seen = []
    for paused in (True, True, False, False):
        assert await engine.schedules.pause("s", paused=paused, now=clock.now)
        seen.append((await only(engine)).paused)
    assert seen == [True, True, False, False]
    assert (await only(engine)).next_at == 100
    assert not await engine.schedules.pause("nothing", paused=True, now=clock.now)


async def test_resuming_may_give_a_new_next_time(engine: Engine, clock: Clock) -> None:
    await engine.schedules.put([a_schedule(next_at=100)], now=clock.now)
    await engine.schedules.pause("s", paused=True, now=clock.now)
    seen = []
    for next_at in (500, 600):  # the second changes nothing: it is resumed already
        assert await engine.schedules.pause("s", paused=False, next_at=next_at, now=clock.now)
        seen.append((await only(engine)).next_at)
    assert seen == [500, 500]
    await engine.schedules.pause("s", paused=True, now=clock.now)
    assert (await only(engine)).next_at == 500
    await engine.schedules.pause("s", paused=False, next_at=None, now=clock.now)  # its end came in the pause
    assert (await only(engine)).next_at is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "a b"},
        {"missed": "never"},
        {"overlap": "maybe"},
        {"waiting": 0},
        {"waiting": 101},
        {"keep": -1},
        {"keep": 1_001},
        {"keep": True},
        {"missed": "all", "timing": Cron(fields="* * * * *")},
        {"job": a_job(after=(a_job().id,))},
        {"job": a_job(priority=11)},
    ],
)
async def test_a_bad_schedule_is_refused(engine: Engine, clock: Clock, wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        await engine.schedules.put([a_schedule("good"), a_schedule(**wrong)], now=clock.now)
    assert await engine.schedules.list() == []


async def test_a_removed_schedule_leaves_its_jobs(engine: Engine, clock: Clock) -> None:
    await engine.schedules.put([a_schedule(next_at=100), a_schedule("other")], now=clock.now)
    await engine.schedules.fire(
        "s", tick=100, before=None, next_at=200, jobs=[job_at(100)], last_at=100, now=clock.now
    )
    assert await engine.schedules.remove("s", now=clock.now)
    assert not await engine.schedules.remove("s", now=clock.now)
    assert (await only(engine)).name == "other"
    assert await states_of(engine, [job_at(100)]) == [JobState.READY]
