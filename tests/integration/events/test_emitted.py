"""What happens to jobs is emitted to those who listen, by whoever made it happen."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.integration.events.conftest import Open, Process
from tests.integration.events.held import a_held
from tests.integration.events.reading import PATIENCE_S, new_jobs, read, read_until, states_of, take
from tests.integration.supervisor.conftest import StartGroup
from tests.integration.supervisor.groups import TASKS, a_job, enqueue
from tests.integration.supervisor.processes import until
from tidemill import BadInput, Event, JobState, SyncInLoop, Tidemill
from tidemill.engine.events.emitting import EmittingEngine
from tidemill.engine.protocol import Fired
from tidemill.engine.registry import connect
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import Failure, Stored
from tidemill.model.jobs.run import ClaimRequest, Completed, Failed, LostRun, Release, Settlement, Then, Want
from tidemill.model.member import ClaimantHeartbeat, MemberInfo
from tidemill.model.schedules.schedule import Every, Schedule
from tidemill.model.time import HOUR, SECOND

BLOCKED, READY, RUNNING, SCHEDULED = JobState.BLOCKED, JobState.READY, JobState.RUNNING, JobState.SCHEDULED
COMPLETED, DEAD, CANCELLED = JobState.COMPLETED, JobState.DEAD, JobState.CANCELLED


@pytest.mark.every_engine
@pytest.mark.row("C2")
async def test_producer_worker_and_listener_are_different_processes(
    app: Tidemill, url: str, group: StartGroup, tmp_path: Path
) -> None:
    """A worker group runs what we enqueue, and everything that either does is received."""
    worker = await group().ready()
    engine = EmittingEngine(await connect(url))
    async with app.events() as events:
        good, bad = a_job("quick", str(tmp_path)), a_job("quick", "too", "many")
        await enqueue(engine, good, bad)

        def all_emitted(found: list[Any]) -> bool:
            return all(len(states_of(found, job.id)) >= 3 for job in (good, bad))

        found = await read_until(events, all_emitted)
    await engine.close()
    for job, end in ((good, COMPLETED), (bad, DEAD)):
        states = states_of(found, job.id)
        assert sorted(states) == sorted([READY, RUNNING, end])
        states.remove(READY)  # another process's, which the worker's may overtake
        assert states == [RUNNING, end]
    emitted = [one for one in found if isinstance(one, Event)]
    assert {one.task for one in emitted} == {TASKS + "quick"}
    assert {one.queue for one in emitted} == {"default"}
    assert {one.member.partition(":")[2] for one in emitted if one.state is RUNNING} == {str(worker.pid)}
    [death] = [one for one in emitted if one.state is DEAD]
    assert death.error
    ended_at = (await app.job(death.job).ainfo()).ended_at
    assert ended_at is not None
    assert abs(death.at - ended_at) < timedelta(seconds=2), "by the engine's clock"


@pytest.mark.every_engine
@pytest.mark.row("C2")
async def test_by_their_times_the_events_of_a_job_are_in_order(app: Tidemill, open_process: Open) -> None:
    """Whichever process emitted them: here the producer has its answer only after the job has ended."""
    producer, turns = await a_held(open_process)
    worker, [job] = await open_process(), new_jobs(1)
    turns["enqueue answered"] = asyncio.Event()
    async with app.events() as events:
        enqueued = asyncio.create_task(producer.engine.jobs.enqueue([job]))
        while not (runs := await take(worker)):  # noqa: ASYNC110  (nobody tells when it is stored)
            await asyncio.sleep(0.01)
        await worker.engine.jobs.settle(
            [Settlement(id=job.id, fence=runs[0].fence, outcome=Completed(), ran=0)]
        )
        found = await read(events, 2)
        turns["enqueue answered"].set()
        await enqueued
        found += await read(events, 1)
    assert [one.state for one in found] == [RUNNING, COMPLETED, READY]
    assert [one.state for one in sorted(found, key=lambda one: one.instant)] == [READY, RUNNING, COMPLETED]


@pytest.mark.every_engine
@pytest.mark.row("C2")
async def test_every_step_of_a_call_is_emitted(app: Tidemill, open_process: Open) -> None:
    process = await open_process()
    jobs, failure = process.engine.jobs, Failed(failure=Failure(error="E", message="no"))
    again = Failed(failure=Failure(error="E", message="no"), retry_in=HOUR)
    new = new_jobs(8)
    done, dead, retried, released, snoozed, lost, asked, then_of = (job.id for job in new)
    [later, child, known] = [*new_jobs(1, delay=HOUR), *new_jobs(2)]
    async with app.events() as events:
        await jobs.enqueue([*new, later])
        await jobs.enqueue([msgspec.structs.replace(known, queue="other")])
        runs = {job.id: job.fence for job in await take(process)}
        assert await jobs.cancel([asked, later.id]) == ["asked", "cancelled"]
        await jobs.settle(
            [
                Settlement(id=done, fence=runs[done], outcome=Completed()),
                Settlement(id=dead, fence=runs[dead], outcome=failure),
                Settlement(id=retried, fence=runs[retried], outcome=again),
                Settlement(id=asked, fence=runs[asked], outcome=again),
                Settlement(
                    id=then_of, fence=runs[then_of], outcome=Completed(), then=Then(jobs=(child, known))
                ),
            ]
        )
        await jobs.release(
            [
                Release(id=released, fence=runs[released]),
                Release(id=snoozed, fence=runs[snoozed], delay=HOUR),
            ]
        )
        await jobs.retire(b"c" * 16, [LostRun(id=lost, fence=runs[lost], verdict="crash", message="9")])
        await jobs.replay([dead], token=new_id())
        found = await read(events, 10 + 8 + 1 + 6 + 2 + 1 + 1)
    emitted = {job.id: states_of(found, job.id) for job in (*new, later, child, known)}
    assert emitted == {
        done: [READY, RUNNING, COMPLETED],
        dead: [READY, RUNNING, DEAD, READY],
        retried: [READY, RUNNING, SCHEDULED],
        asked: [READY, RUNNING, CANCELLED],
        then_of: [READY, RUNNING, COMPLETED],
        released: [READY, RUNNING, READY],
        snoozed: [READY, RUNNING, SCHEDULED],
        lost: [READY, RUNNING, READY],
        later.id: [SCHEDULED, CANCELLED],
        child.id: [READY],
        known.id: [READY],
    }
    assert [one.error for one in found if one.job_id == dead] == ["", "", "E: no", ""]
    assert {one.member for one in found if one.state is RUNNING} == {"host:1"}


@pytest.mark.every_engine
@pytest.mark.row("C2")
async def test_what_the_engine_does_by_itself_is_emitted(app: Tidemill, open_process: Open) -> None:
    """Time, the end of parents, and what heartbeats and sign-offs release."""
    process = await open_process()
    jobs, members = process.engine.jobs, process.engine.members
    [parent, doomed, released] = new_jobs(3)
    due = msgspec.structs.replace(new_jobs(1)[0], delay=1, queue="due")
    expiring = msgspec.structs.replace(new_jobs(1)[0], expires=1, queue="due")
    child, orphan = (msgspec.structs.replace(job, after=(parent.id,)) for job in new_jobs(2))
    orphan = msgspec.structs.replace(orphan, after=(doomed.id,))
    member = MemberInfo(id=b"m" * 16, name="host:1", lease=HOUR)
    async with app.events() as events:
        await jobs.enqueue([parent, doomed, released, due, expiring, child, orphan])
        runs = {job.id: job.fence for job in await take(process)}
        await jobs.promote()
        await jobs.settle(
            [
                Settlement(id=parent.id, fence=runs[parent.id], outcome=Completed()),
                Settlement(
                    id=doomed.id, fence=runs[doomed.id], outcome=Failed(failure=Failure(message="no"))
                ),
            ]
        )
        await members.heartbeat(member, [ClaimantHeartbeat(claimant=b"c" * 16, answered_through=1, held=())])
        await take(process, number=2)
        await members.leave(member.id)
        found = await read(events, 7 + 3 + 2 + 4 + 1 + 2 + 2)
    emitted = {
        job.id: states_of(found, job.id) for job in (parent, doomed, released, due, expiring, child, orphan)
    }
    assert emitted == {
        parent.id: [READY, RUNNING, COMPLETED],
        doomed.id: [READY, RUNNING, DEAD],
        released.id: [READY, RUNNING, READY, RUNNING, READY],
        due.id: [SCHEDULED, READY],
        expiring.id: [READY, DEAD],
        child.id: [BLOCKED, READY, RUNNING, READY],
        orphan.id: [BLOCKED, CANCELLED],
    }
    why = {(one.job_id, one.state): one.error for one in found}
    assert why[expiring.id, DEAD] == "expired: not started before it expired"
    assert why[orphan.id, CANCELLED].startswith("parent: a parent did not complete: ")
    assert {one.queue for one in found if one.job_id in (due.id, expiring.id)} == {"due"}
    assert {one.task for one in found} == {"t"}


@pytest.mark.row("C2")
async def test_a_delayed_job_is_emitted_as_ready_when_it_is_due(
    app: Tidemill, url: str, group: StartGroup, tmp_path: Path
) -> None:
    """By the worker that claims it, or by the controller, whoever moved it: once."""
    await group().ready()
    engine = EmittingEngine(await connect(url))
    async with app.events() as events:
        job = msgspec.structs.replace(a_job("quick", str(tmp_path)), delay=SECOND // 2)
        await enqueue(engine, job)
        found = await read_until(events, lambda found: COMPLETED in states_of(found, job.id))
        more = a_job("quick", str(tmp_path))
        await enqueue(engine, more)
        found += await read_until(events, lambda found: COMPLETED in states_of(found, more.id))
    await engine.close()
    assert sorted(states_of(found, job.id)) == sorted([SCHEDULED, READY, RUNNING, COMPLETED])


@pytest.mark.every_engine
@pytest.mark.row("C2")
async def test_the_jobs_of_a_member_that_is_swept_are_emitted(app: Tidemill, open_process: Open) -> None:
    """Who sweeps may be another process than any that had to do with them."""
    process, sweeper = await open_process(), await open_process()
    [job] = new_jobs(1)
    gone = MemberInfo(id=b"g" * 16, name="gone:1", heartbeat=SECOND // 100, lease=SECOND // 10)
    mine = MemberInfo(id=b"s" * 16, name="here:1", heartbeat=SECOND, lease=2 * SECOND + 1)
    async with app.events() as events:
        await process.engine.jobs.enqueue([job])
        await process.engine.members.heartbeat(gone)
        request = ClaimRequest(member=gone.id, claimant=b"c" * 16, number=1, wants=(Want("default"),), most=1)
        await process.engine.jobs.claim(request)
        swept: list[Any] = []

        async def sweep() -> bool:
            await sweeper.engine.members.heartbeat(mine)
            swept.append(await sweeper.engine.jobs.reclaim(mine.id))
            return bool(swept[-1].jobs)

        await until_async(sweep)
        found = await read(events, 3)
    assert states_of(found, job.id) == [READY, RUNNING, READY]
    assert found[-1].error == "lost: its member vanished"


async def until_async(fact: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await fact():  # noqa: ASYNC110  (each check is a sweep)
            await asyncio.sleep(0.05)


@pytest.mark.row("C2")
async def test_a_schedule_that_fires_is_emitted_once(app: Tidemill, open_process: Open) -> None:
    process = await open_process()
    [template, job, last] = new_jobs(3)
    schedule = Schedule(name="s", timing=Every(seconds=60), job=template, next_at=100)
    async with app.events() as events:
        await process.engine.schedules.put([schedule])
        assert await process.engine.schedules.fire(
            "s", tick=100, before=None, next_at=200, jobs=[job], last_at=100
        )
        assert not await process.engine.schedules.fire(
            "s", tick=100, before=None, next_at=200, jobs=[job], last_at=100
        )
        again = await process.engine.schedules.fire(
            "s", tick=200, before=100, next_at=300, jobs=[job], last_at=200
        )
        assert again == Fired([Stored(job.id, False)]), (
            "a tick's job that there is already is not emitted as new"
        )
        await process.engine.jobs.enqueue([last])
        found = await read(events, 2)
    assert [event.job_id for event in found] == [job.id, last.id]


async def test_runs_that_were_claimed_before_anybody_listened_are_emitted_in_full(
    app: Tidemill, open_process: Open
) -> None:
    process = await open_process()
    await process.engine.jobs.enqueue(new_jobs(2))
    one, other = await take(process)
    async with app.events() as events:
        settlements = [Settlement(id=run.id, fence=run.fence, outcome=Completed()) for run in (one, other)]
        await process.engine.jobs.settle(settlements)
        found = await read(events, 2)
    assert [(event.state, event.queue, event.task) for event in found] == [(COMPLETED, "default", "t")] * 2


@pytest.mark.row("C2")
def test_plain_for_works_and_filters_choose(url: str) -> None:
    app = Tidemill(url)
    watched, other = app.task(name="watched", queue="w")(_nothing), app.task(name="other")(_nothing)
    with app.events(queue="w", task=watched, states=["ready", "cancelled"]) as events:
        other.enqueue()
        other.using(queue="w").enqueue()
        job = watched.using(delay=3_600).enqueue()
        job.cancel()
        second = watched.enqueue()
        found = [event for event in (next(events), next(events)) if isinstance(event, Event)]
        assert [(event.job, event.state) for event in found] == [(job.id, CANCELLED), (second.id, READY)]
        assert app.job(found[0].job).info().state is CANCELLED
    assert list(events) == [], "closed"
    with app.events(job=second) as events:
        watched.enqueue()
        second.cancel()
        assert states_of([next(events)], second.uuid.bytes) == [CANCELLED]
    app.close()


def _nothing() -> None: ...


@pytest.mark.row("C2")
async def test_a_filter_waits_on_through_what_it_does_not_want(app: Tidemill, open_process: Open) -> None:
    process = await open_process()
    [wanted] = new_jobs(1, queue="w")
    async with app.events(queue="w") as events:
        reading = asyncio.create_task(read(events, 1))
        await _publish_to_others(process)
        await process.engine.jobs.enqueue([wanted])
        [event] = await reading
    assert event.job_id == wanted.id


async def _publish_to_others(process: Process) -> None:
    """A batch in which there is nothing of the queues `default` and `w`."""
    published = process.calls["signals.publish"]
    await process.engine.jobs.enqueue(new_jobs(1, queue="other"))
    await until(lambda: process.calls["signals.publish"] > published)


async def test_a_program_that_enqueues_and_ends_at_once_is_received(app: Tidemill, url: str) -> None:
    code = "import sys; from tidemill import Tidemill; Tidemill(sys.argv[1]).enqueue('t', queue='q')"
    async with app.events() as events:
        await asyncio.to_thread(subprocess.run, (sys.executable, "-c", code, url), check=True)
        [event] = await read(events, 1)
    assert (event.state, event.queue, event.task) == (READY, "q", "t")


async def test_what_cannot_be_is_refused_at_the_edge(app: Tidemill) -> None:
    with pytest.raises(BadInput, match="the states are blocked, "):
        app.events(states=["finished"])
    with pytest.raises(BadInput, match="a job id is a UUID"):
        app.events(job="17")
    with pytest.raises(SyncInLoop, match="`async for`"):
        next(app.events())
    with pytest.raises(SyncInLoop, match="`async with`"), app.events():
        pass


@pytest.mark.every_engine
def test_closing_ends_an_iteration_in_another_thread(url: str) -> None:
    app = Tidemill(url)
    events = app.events().__enter__()
    found: list[Any] = []
    reader = threading.Thread(target=lambda: found.extend(events))
    reader.start()
    events.close()
    reader.join(PATIENCE_S)
    assert not reader.is_alive()
    events = app.events().__enter__()
    reader = threading.Thread(target=lambda: found.extend(events))
    reader.start()
    app.close()
    reader.join(PATIENCE_S)
    assert not reader.is_alive()
    assert found == []


@pytest.fixture
def listening(url: str) -> Iterator["subprocess.Popen[str]"]:
    """`tidemill events`, announced and seen."""
    command = (sys.executable, "-m", "tidemill", "events", "--json", "--url", url, "-q", "default")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "listening" in process.stderr.readline()
    yield process
    process.kill()
    process.communicate(timeout=30)


@pytest.mark.row("C2")
async def test_the_terminal_shows_events_until_ctrl_c(
    open_process: Open, request: pytest.FixtureRequest
) -> None:
    process = await open_process()
    await process.engine.now()
    listening = await asyncio.to_thread(request.getfixturevalue, "listening")
    [job] = new_jobs(1)
    await _publish_to_others(process)
    await process.engine.jobs.enqueue([*new_jobs(1, queue="other"), job])
    line = await asyncio.to_thread(listening.stdout.readline)
    emitted = json.loads(line)
    assert (emitted["job"].replace("-", ""), emitted["state"]) == (job.id.hex(), "ready")
    assert (emitted["queue"], emitted["task"], emitted["member"], emitted["error"]) == (
        "default",
        "t",
        "",
        "",
    )
    listening.send_signal(signal.SIGINT)
    out, err = await asyncio.to_thread(listening.communicate)
    assert (listening.returncode, out, err) == (0, "", "")
    assert await process.engine.leases.list() == [], "signed off"
