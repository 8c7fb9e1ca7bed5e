"""Schedules of an app, from the decorator to the run, with a worker inside the program."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from tidemill import BadInput, Refused, StartupFailed, Tidemill, UnknownSchedule, current_job

PATIENCE_S = 30.0


async def runs_of(runs: "asyncio.Queue[Any]", count: int) -> list[Any]:
    """What so many runs had to say."""
    async with asyncio.timeout(PATIENCE_S):
        return [await runs.get() for _ in range(count)]


@pytest.mark.every_engine
@pytest.mark.row("D4")
async def test_an_interval_runs_again_after_each_run_and_never_twice_at_once(app: Tidemill) -> None:
    runs: asyncio.Queue[tuple[float, float]] = asyncio.Queue()
    at_once = [0]

    @app.every(0.2)
    @app.task
    async def sweep() -> None:
        at_once.append(at_once[-1] + 1)
        began = time.monotonic()
        await asyncio.sleep(0.02)
        runs.put_nowait((began, time.monotonic()))
        at_once.append(at_once[-1] - 1)

    async with app.worker():
        found = await runs_of(runs, 4)
    assert max(at_once) == 1
    for (_, ended), (began, _) in pairwise(found):
        assert began - ended >= 0.19  # the interval, by two clocks
    await app.aclose()


@pytest.mark.every_engine
@pytest.mark.row("D4")
async def test_cron_to_the_second_and_what_the_job_knows(app: Tidemill) -> None:
    runs: asyncio.Queue[tuple[str, datetime]] = asyncio.Queue()

    @app.cron("* * * * * *", name="secondly", overlap="allow")
    @app.task
    async def tick() -> None:
        runs.put_nowait((current_job().id, datetime.now(UTC)))

    async with app.worker():
        found = await runs_of(runs, 3)
        (schedule,) = await app.schedules.alist()
    assert (schedule.name, schedule.when, schedule.state) == ("secondly", "every second", "active")
    assert schedule.task == tick.name
    assert len({job for job, _ in found}) == 3
    moments = [int(job.replace("-", "")[:12], 16) / 1_000 for job, _ in found]  # the tick is in the id
    assert all(moment.is_integer() for moment in moments)
    late_s = [at.timestamp() - moment for (_, at), moment in zip(found, moments, strict=True)]
    assert max(late_s[1:]) < 5  # a ceiling: usual are a few milliseconds
    await app.aclose()


@pytest.mark.row("D4")
async def test_start_ups_of_the_cluster_and_of_each_worker(app: Tidemill) -> None:
    runs: asyncio.Queue[str] = asyncio.Queue()

    @app.on_startup(scope="worker")
    @app.task
    def warm_up() -> None:
        warmed.append("warm")

    @app.on_startup()
    @app.task
    async def once() -> None:
        runs.put_nowait("once")

    warmed: list[str] = []
    async with app.worker():
        assert warmed == ["warm"]  # before the block begins
        assert await runs_of(runs, 1) == ["once"]
        async with app.worker():
            assert warmed == ["warm", "warm"]
    async with app.worker():  # the cluster starts again
        assert await runs_of(runs, 1) == ["once"]
    assert runs.empty()
    await app.aclose()


async def test_a_start_up_that_fails_keeps_the_worker_from_working(app: Tidemill) -> None:
    @app.on_startup(scope="worker")
    @app.task
    async def broken() -> None:
        raise OSError("no database")

    with pytest.raises(StartupFailed, match="broken failed: OSError: no database"):
        async with app.worker():
            pytest.fail("it must not begin")
    await app.aclose()


@pytest.mark.every_engine
@pytest.mark.row("D4")
async def test_schedules_made_at_run_time(app: Tidemill) -> None:
    runs: asyncio.Queue[int] = asyncio.Queue()

    @app.task
    async def report(number: int) -> None:
        runs.put_nowait(number)

    schedules = app.schedules
    await schedules.aput("report:7", report.call(7), cron="0 6 * * mon-fri", tz="Europe/Berlin")
    await schedules.aput("often", report.call(1), every=0.1, start=datetime.now(UTC) + timedelta(days=1))
    often, seven = await schedules.alist()
    assert (seven.when, seven.state) == ("every Monday to Friday at 06:00 Europe/Berlin", "active")
    assert (seven.next_at, seven.last_at, seven.source) == (seven.next_at, None, "")
    assert often.next_at is not None
    await schedules.apause("report:7")
    async with app.worker():
        job = await schedules.arun("report:7")  # a pause does not refuse who asks
        await job.aresult(timeout=PATIENCE_S)
        assert runs.get_nowait() == 7
        await schedules.arun("often")
        assert await runs_of(runs, 3) == [1, 1, 1]  # from here on by itself, although its start is tomorrow
    states = {each.name: each.state for each in await schedules.alist()}
    assert states["report:7"] == "paused"
    await schedules.aresume("report:7")
    await schedules.aremove("often")
    (seven,) = await schedules.alist()
    assert (seven.state, seven.name) == ("active", "report:7")
    for operation in (schedules.apause, schedules.aresume, schedules.arun, schedules.aremove):
        with pytest.raises(UnknownSchedule, match="did you mean 'report:7'"):
            await operation("report:8")
    await app.aclose()


def test_the_same_for_code_that_blocks(app: Tidemill) -> None:
    @app.task
    def nothing() -> None: ...

    app.schedules.put("n", nothing.call(), cron="0 3 * * sun", missed="skip", overlap="allow", jitter=30)
    first = app.schedules.run("n")
    assert first.info().schedule == "n"
    assert app.schedules.run("n") != first
    app.schedules.pause("n")
    app.schedules.resume("n")
    (found,) = app.schedules.list()
    assert found.when == "every Sunday at 03:00 UTC, up to 30 s later"
    assert (found.missed, found.overlap) == ("skip", "allow")
    app.schedules.remove("n")
    assert app.schedules.list() == []


@pytest.mark.row("D4")
async def test_a_run_is_refused_while_the_last_one_has_not_ended(app: Tidemill) -> None:
    @app.task
    async def nothing() -> None: ...

    for name, when in (("cron", {"cron": "0 3 * * *"}), ("every", {"every": 9.0})):
        await app.schedules.aput(name, nothing.call(), **when)
        job = await app.schedules.arun(name)
        with pytest.raises(Refused, match=job.id):
            await app.schedules.arun(name)
    await app.aclose()


@pytest.mark.row("D4")
async def test_runs_asked_for_stand_in_line_up_to_its_bound(app: Tidemill) -> None:
    """Each waits for all before it; the bound is that of `put`, and of `cron` in code."""

    @app.cron("0 3 * * *", name="declared", overlap="queue", waiting=7)
    @app.task
    async def nothing() -> None: ...

    with pytest.raises(BadInput, match="from 1 to 100"):
        await app.schedules.aput("n", nothing.call(), cron="0 3 * * *", overlap="queue", waiting=0)
    await app.schedules.aput("n", nothing.call(), cron="0 3 * * *", overlap="queue", waiting=2)
    jobs = [await app.schedules.arun("n") for _ in range(3)]
    assert [(await job.ainfo()).state for job in jobs] == ["ready", "blocked", "blocked"]
    with pytest.raises(Refused, match="2 jobs of 'n' wait already"):
        await app.schedules.arun("n")
    await jobs[1].acancel()
    assert (await jobs[2].ainfo()).state == "blocked", "the first has not run"
    fourth = await app.schedules.arun("n")
    async with app.worker():
        await fourth.aresult(timeout=30)
        assert (await jobs[2].ainfo()).state == "completed"
        found = {each.name: each.waiting for each in await app.schedules.alist()}
    assert found == {"declared": 7, "n": 2}
    await app.aclose()


async def test_how_many_jobs_a_schedule_keeps(app: Tidemill) -> None:
    """100 unless it says something else; start-ups as their queue says."""

    @app.on_startup(name="startup")
    @app.cron("0 3 * * *", name="cron")
    @app.every(3600, name="every", keep=None)
    @app.task
    async def nothing() -> None: ...

    async with app.worker() as worker:
        await worker.moments.reached("idle")
        await app.schedules.aput("put", nothing.call(), every=3600)
        await app.schedules.aput("put:0", nothing.call(), cron="0 3 * * *", keep=0)
        found = {each.name: each.keep for each in await app.schedules.alist()}
    assert found == {"startup": None, "cron": 100, "every": None, "put": 100, "put:0": 0}
    await app.aclose()


async def test_what_code_declares_is_changed_in_the_code(app: Tidemill) -> None:
    @app.cron("0 3 * * *", name="nightly")
    @app.task
    async def nothing() -> None: ...

    async with app.worker() as worker:
        await worker.moments.reached("idle")
        (found,) = await app.schedules.alist()
        assert found.source
        with pytest.raises(Refused, match="declared by the code"):
            await app.schedules.aput("nightly", nothing.call(), every=1)
    await app.aclose()


def test_what_cannot_work_is_refused_when_it_is_declared(app: Tidemill) -> None:
    @app.task
    def fine() -> None: ...

    @app.task
    def needs(what: str) -> None: ...

    wrong: dict[str, Callable[[], object]] = {
        "stand above @app.task": lambda: app.every(3)(lambda: None),  # type: ignore[type-var]
        "needs what": lambda: app.cron("* * * * *")(needs),
        "two schedules": lambda: app.every(3)(app.cron("* * * * *")(fine)),
        "not a cron expression": lambda: app.cron("99 * * * *"),
        "not a time zone": lambda: app.cron("* * * * *", tz="Berlin"),
        "has no time zone": lambda: app.cron("* * * * *", start=datetime(2026, 1, 1)),  # noqa: DTZ001
        "scope is": lambda: app.on_startup(scope="world"),  # type: ignore[arg-type]
        "has no name=": lambda: app.on_startup(scope="worker", name="x"),
    }
    for words, declare in wrong.items():
        with pytest.raises(BadInput, match=words):
            declare()


def test_the_decorators_return_the_same_task(app: Tidemill) -> None:
    @app.task
    def fine(number: int = 1) -> int:
        return number

    assert app.cron("0 3 * * *", name="a")(app.every(3)(app.on_startup(name="b")(fine))) is fine
    assert app.registry.schedule_names() == ["a", "b", fine.name]
    app.cron("0 3 * * *", name="a")(fine)  # a module that is imported twice
