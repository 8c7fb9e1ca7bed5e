"""`inspect.get` and `inspect.list`: records, order, filters, cursors, and a bounded scan."""

from contextlib import suppress
from typing import Any

import pytest

from tidemill.engine.protocol import BATCH_LIMIT, Engine
from tidemill.engine.shared.paging import Cursor, write_cursor
from tidemill.model.errors import BadInput
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import FIRST_KEPT, LAST_KEPT, JobState, NewJob
from tidemill.model.jobs.run import LostRun
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import SECOND
from tidemill.model.view import SCAN_LIMIT, JobFilter
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_failure,
    a_job,
    configure,
    ids_of,
    job_of,
    listed,
    some_jobs,
)


@pytest.mark.row("A5")
async def test_the_first_and_the_last_failures_are_kept(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    new = a_job(attempts=100)
    await engine.jobs.enqueue([new], now=clock.now)
    for number in range(1, 41):
        await claimant.fail(await claimant.take_one(), retry_in=0, failure=a_failure(f"no {number}"))
        clock.forward(1)
    job = await job_of(engine, new.id)
    expected = [*range(1, FIRST_KEPT + 1), *range(41 - LAST_KEPT, 41)]
    assert [failure.number for failure in job.failures] == expected
    assert [failure.message for failure in job.failures] == [f"no {number}" for number in expected]
    assert [failure.attempt for failure in job.failures] == expected
    assert (job.failure_count, job.error) == (40, job.failures[-1])


async def test_get_answers_in_the_order_of_the_ids(engine: Engine, clock: Clock) -> None:
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    ids = [jobs[2].id, new_id(), jobs[0].id, jobs[2].id]
    assert [job and job.id for job in await engine.inspect.get(ids)] == [ids[0], None, ids[2], ids[3]]


# The order of a list


async def test_states_come_in_their_order_and_queues_by_name(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    for queue in ("b", "a"):
        await engine.jobs.enqueue(some_jobs(4, queue=queue), now=clock.now)
        done, dead, stopped, _ = await claimant.take(queue)
        await claimant.complete(done)
        await claimant.fail(dead)
        await claimant.stop(stopped)
        parent = a_job(queue=queue)
        later = a_job(queue=queue, delay=SECOND)
        await engine.jobs.enqueue([parent, later, a_job(queue=queue, after=(parent.id,))], now=clock.now)
    jobs = await listed(engine)
    assert [(job.state, job.queue) for job in jobs] == [(state, q) for state in JobState for q in "ab"]


async def test_ready_jobs_stand_as_they_are_claimed(engine: Engine, clock: Clock) -> None:
    await configure(engine, "q", QueueOptions(fair_by="key"), now=clock.now)
    jobs = [
        a_job(priority=p, key=k) for p, k in ((5, "b"), (5, "a"), (0, "z"), (5, "b"), (5, "a"), (10, "a"))
    ]
    await engine.jobs.enqueue(jobs, now=clock.now)
    expected = [jobs[index] for index in (2, 1, 4, 0, 3, 5)]
    assert ids_of(await listed(engine, JobFilter(state=JobState.READY))) == ids_of(expected)


async def test_suspects_stand_behind_the_others_of_their_priority(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    jobs = some_jobs(3)
    await engine.jobs.enqueue(jobs, now=clock.now)
    run = await claimant.take_one(ids=(jobs[1].id,))
    lost = LostRun(id=run.id, fence=run.fence, verdict="suspect")
    await engine.jobs.retire(claimant.id, [lost], now=clock.now)
    page = await engine.inspect.list(JobFilter(state=JobState.READY))
    assert ids_of(page.jobs) == [jobs[0].id, jobs[2].id, jobs[1].id]
    assert [job.suspect for job in page.jobs] == [False, False, True]


async def test_scheduled_jobs_stand_by_due_time(engine: Engine, clock: Clock) -> None:
    jobs = [a_job(delay=delay) for delay in (30, 10, 20)]
    await engine.jobs.enqueue(jobs, now=clock.now)
    expected = [jobs[index] for index in (1, 2, 0)]
    assert ids_of(await listed(engine, JobFilter(state=JobState.SCHEDULED))) == ids_of(expected)


async def test_blocked_and_running_jobs_stand_by_creation(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    parent = a_job(queue="p")
    blocked = some_jobs(3, after=(parent.id,))
    running = [a_job(priority=priority) for priority in (9, 5, 0)]
    await engine.jobs.enqueue([parent], now=clock.now)
    for first, second in zip(blocked, running, strict=True):
        clock.forward(1)
        await engine.jobs.enqueue([first, second], now=clock.now)
    await claimant.take()
    assert ids_of(await listed(engine, JobFilter(state=JobState.BLOCKED))) == ids_of(blocked)
    assert ids_of(await listed(engine, JobFilter(state=JobState.RUNNING))) == ids_of(running)


async def test_finished_jobs_stand_newest_end_first(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    runs = await claimant.take()
    for run in (runs[1], runs[0], runs[2]):
        clock.forward(1)
        await claimant.complete(run)
    expected = [runs[2], runs[0], runs[1]]
    assert ids_of(await listed(engine, JobFilter(state=JobState.COMPLETED))) == ids_of(expected)


@pytest.mark.row("C1")
async def test_listed_jobs_show_all_but_the_bulky(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(2, key="k", headers=b'{"tags":["a"]}'), now=clock.now)
    done, dead = await claimant.take()
    await claimant.complete(done)
    await claimant.fail(dead)
    for job in await listed(engine):
        full = await job_of(engine, job.id)
        assert (job.body, job.result, job.failures) == (None, None, ())
        for field in full.__struct_fields__:
            if field not in ("body", "result", "failures"):
                assert getattr(job, field) == getattr(full, field), field


# Cursors


@pytest.mark.row("C3")
@pytest.mark.parametrize("limit", [1, 7, 50])
async def test_pages_add_up(engine: Engine, clock: Clock, claimant: Claimant, limit: int) -> None:
    for queue in "abc":
        await engine.jobs.enqueue(
            [a_job(queue=queue, priority=n % 3, delay=n % 2) for n in range(10)], now=clock.now
        )
    await claimant.complete(*await claimant.take("a", "b", most=6))
    await claimant.take("c", most=3)
    whole = ids_of(await listed(engine))
    assert len(set(whole)) == 30
    assert ids_of(await listed(engine, limit=limit)) == whole
    page = await engine.inspect.list(JobFilter(), limit=limit)
    assert len(page.jobs) == min(limit, 30)


@pytest.mark.parametrize("state", JobState)
async def test_a_page_does_not_end_among_equals(
    engine: Engine, clock: Clock, claimant: Claimant, state: JobState
) -> None:
    """All jobs have the same times: a cursor by time alone would skip or repeat."""
    parent = a_job(queue="p")
    after = (parent.id,) if state is JobState.BLOCKED else ()
    jobs = some_jobs(9, delay=SECOND if state is JobState.SCHEDULED else 0, after=after)
    await engine.jobs.enqueue([parent, *jobs], now=clock.now)
    if state not in (JobState.BLOCKED, JobState.SCHEDULED, JobState.READY):
        runs = await claimant.take()
        match state:
            case JobState.COMPLETED:
                await claimant.complete(*runs)
            case JobState.DEAD:
                await claimant.fail(*runs)
            case JobState.CANCELLED:
                await claimant.stop(*runs)
    pages = ids_of(await listed(engine, JobFilter(state=state, queue="q"), limit=2))
    assert sorted(pages) == sorted(ids_of(jobs))


async def test_a_job_that_stays_put_is_neither_skipped_nor_repeated(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    jobs = some_jobs(30)
    await engine.jobs.enqueue(jobs, now=clock.now)
    only = JobFilter(state=JobState.READY)
    page = await engine.inspect.list(only, limit=10)
    seen = ids_of(page.jobs)
    while page.cursor:
        await claimant.take(most=3)  # those in front go
        await engine.jobs.enqueue([a_job(priority=0)], now=clock.now)  # others come before them
        page = await engine.inspect.list(only, cursor=page.cursor, limit=10)
        seen += ids_of(page.jobs)
    assert seen == ids_of(jobs)


async def test_a_cursor_outlives_the_job_it_stands_on(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(6), now=clock.now)
    for run in await claimant.take():
        clock.forward(1)
        await claimant.complete(run)
    whole = ids_of(await listed(engine))
    page = await engine.inspect.list(JobFilter(), limit=3)
    await engine.jobs.drop([whole[2]], now=clock.now)
    page = await engine.inspect.list(JobFilter(), cursor=page.cursor, limit=10)
    assert (ids_of(page.jobs), page.cursor) == (whole[3:], None)


async def test_a_cursor_that_was_altered_is_refused(engine: Engine, clock: Clock) -> None:
    """It comes back from a browser."""
    await engine.jobs.enqueue([a_job(priority=n % 2) for n in range(6)], now=clock.now)
    cursor = (await engine.inspect.list(JobFilter(), limit=3)).cursor
    assert cursor is not None
    for at in range(len(cursor)):
        for altered in (cursor[:at], cursor[:at] + "A" + cursor[at + 1 :], cursor[:at] + "/" + cursor[at:]):
            if altered != cursor:
                with pytest.raises(BadInput):
                    await engine.inspect.list(JobFilter(), cursor=altered, limit=3)
    with pytest.raises(BadInput):
        await engine.inspect.list(JobFilter(), cursor=cursor + "!", limit=3)


FORGED: dict[str, Cursor] = {
    "too few parts": Cursor(JobState.READY, "q", [1]),
    "texts for numbers": Cursor(JobState.SCHEDULED, "q", ["1", "2"]),
    "a number for a text": Cursor(JobState.READY, "q", [1, 0, 7, 1]),
    "a number that no store has": Cursor(JobState.SCHEDULED, "q", [1 << 63, 1]),
    "a number below 0": Cursor(JobState.RUNNING, "q", [-1]),
    "no such priority": Cursor(JobState.READY, "q", [11, 0, "", 1]),
    "no such kind of lane": Cursor(JobState.READY, "q", [1, 4, "", 1]),
    "a zero in a group": Cursor(JobState.READY, "q", [1, 0, "a\0b", 1]),
    "a zero in a queue": Cursor(JobState.BLOCKED, "a\0b", [1]),
}


async def test_a_forged_cursor_is_refused(engine: Engine, clock: Clock) -> None:
    """Its digest is no secret: what it says is checked all the same."""
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    taken = []
    for what, forged in FORGED.items():
        with suppress(BadInput):
            await engine.inspect.list(JobFilter(), cursor=write_cursor(JobFilter(), forged))
            taken.append(what)
    assert taken == []


OTHER_FILTERS = {
    "of its state": JobFilter(state=JobState.READY),
    "of its queue": JobFilter(queue="q"),
    "of another queue": JobFilter(queue="other"),
    "of a task": JobFilter(task="t"),
    "of a key": JobFilter(key="k"),
    "of a tag": JobFilter(tag="t"),
    "of a text": JobFilter(text="t"),
    "of a group": JobFilter(group="t/expired"),
    "of a time": JobFilter(since=1),
    "of a member": JobFilter(member="m"),
    "of a schedule": JobFilter(schedule="s"),
    "of a priority": JobFilter(priority=5),
    "of another state": JobFilter(state=JobState.COMPLETED),
}


async def test_a_cursor_of_another_listing_is_refused(engine: Engine, clock: Clock) -> None:
    await engine.jobs.enqueue(some_jobs(6), now=clock.now)
    cursor = (await engine.inspect.list(JobFilter(), limit=2)).cursor
    taken = []
    for what, other in OTHER_FILTERS.items():
        with suppress(BadInput):
            await engine.inspect.list(other, cursor=cursor)
            taken.append(what)
    assert taken == []
    assert len((await engine.inspect.list(JobFilter(), cursor=cursor)).jobs) == 4


# Filters


async def filtered(engine: Engine, **parts: Any) -> list[str]:
    return sorted(job.task for job in await listed(engine, JobFilter(**parts)))


async def test_filters(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    jobs: list[NewJob] = [
        a_job(task="one", queue="a", key="x", headers=b'{"tags":["red","blue"]}', body=b'[["pear"],{}]'),
        a_job(task="two", queue="a", key="y", headers=b'{"tags":["redder"]}', body=b'[["Pear_1"],{}]'),
        a_job(task="three", queue="b", key="x", headers=b'{"origin":"red"}', body=b'[["100%"],{}]'),
        a_job(task="four", queue="b", delay=SECOND),
    ]
    await engine.jobs.enqueue(jobs, now=clock.now)
    assert await filtered(engine) == ["four", "one", "three", "two"]
    assert await filtered(engine, queue="a") == ["one", "two"]
    assert await filtered(engine, state=JobState.SCHEDULED) == ["four"]
    assert await filtered(engine, task="one") == ["one"]
    assert await filtered(engine, key="x") == ["one", "three"]
    assert await filtered(engine, tag="red") == ["one"]
    assert await filtered(engine, text="pear") == ["one"]
    assert await filtered(engine, text="ear_") == ["two"]
    assert await filtered(engine, text="0%") == ["three"]
    assert await filtered(engine, key="x", queue="a", tag="blue", text="pear", task="one") == ["one"]
    assert await filtered(engine, key="x", tag="redder") == []
    assert await filtered(engine, queue="nothing") == []


async def test_filters_by_member_schedule_and_priority(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    jobs = [
        a_job(task="run", priority=0, schedule="nightly"),
        a_job(task="wait", priority=7, schedule="hourly"),
        a_job(task="later", priority=7, delay=SECOND, schedule="nightly"),
    ]
    await engine.jobs.enqueue(jobs, now=clock.now)
    await claimant.take_one()
    assert await filtered(engine, member=claimant.member.name) == ["run"]
    assert await filtered(engine, member="another") == []
    assert await filtered(engine, schedule="nightly") == ["later", "run"]
    assert await filtered(engine, priority=7) == ["later", "wait"]
    assert await filtered(engine, priority=7, state=JobState.READY) == ["wait"]
    assert await filtered(engine, priority=5) == []


async def test_filters_by_time(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    """Of what lies ahead the due time counts, of what ended the end, else since when it is in its state."""
    begin = clock.now
    parent = a_job(task="parent")
    await engine.jobs.enqueue([parent, a_job(task="child", after=(parent.id,))], now=clock.now)
    await engine.jobs.enqueue([a_job(task=f"due-{n}", delay=n * SECOND) for n in (50, 60)], now=clock.now)
    await engine.jobs.enqueue([a_job(queue="e", task=f"ended-{n}") for n in range(5)], now=clock.now)
    runs = await claimant.take("e")
    for run in runs[:4]:
        clock.forward(1)
        await (claimant.fail(run) if run is runs[0] else claimant.complete(run))

    async def between(since: int | None, until: int | None, **parts: Any) -> list[str]:
        moments = [None if each is None else begin + each * SECOND for each in (since, until)]
        return await filtered(engine, since=moments[0], until=moments[1], **parts)

    assert await between(None, 1) == ["child", "ended-4", "parent"]
    assert await between(1, 3) == ["ended-0", "ended-1"]
    assert await between(3, 50) == ["ended-2", "ended-3"]
    assert await between(50, 61) == ["due-50", "due-60"]
    assert await between(50, 60) == ["due-50"]
    assert await between(4, None, state=JobState.COMPLETED) == ["ended-3"]
    assert await between(None, 3, state=JobState.COMPLETED) == ["ended-1"]
    assert await between(0, 2, state=JobState.DEAD, task="ended-0") == ["ended-0"]
    assert await between(2, 9, state=JobState.DEAD, task="ended-0") == []
    pages = await listed(engine, JobFilter(since=begin + SECOND, until=begin + 55 * SECOND), limit=2)
    assert sorted(job.task for job in pages) == ["due-50", *(f"ended-{n}" for n in range(4))]


@pytest.mark.row("C3")
@pytest.mark.parametrize("state", [JobState.SCHEDULED, JobState.DEAD])
async def test_a_range_of_time_is_found_by_its_order(
    engine: Engine, clock: Clock, claimant: Claimant, state: JobState
) -> None:
    """What lies outside is not scanned."""
    delays = range(1, 401)
    if state is JobState.SCHEDULED:
        await engine.jobs.enqueue([a_job(delay=n * SECOND) for n in delays], now=clock.now)
        begin = clock.now
    else:
        await engine.jobs.enqueue(some_jobs(400), now=clock.now)
        runs = await claimant.take(most=400)
        begin = clock.now
        for run in runs:
            clock.forward(1)
            await claimant.fail(run)
    only = JobFilter(state=state, since=begin + 200 * SECOND, until=begin + 203 * SECOND)
    page = await engine.inspect.list(only)
    assert (len(page.jobs), page.scanned, page.cursor) == (3, 3, None)


BAD_FILTERS = {
    "a range that ends before it begins": {"since": 2, "until": 1},
    "an empty range": {"since": 1, "until": 1},
    "a moment that is none": {"since": -1},
    "a moment with a fraction": {"until": 1.5},
    "a priority that is none": {"priority": 11},
    "a member that is no text": {"member": "\ud800"},
    "a schedule that is no text": {"schedule": 7},
}


@pytest.mark.parametrize("parts", BAD_FILTERS.values(), ids=BAD_FILTERS)
async def test_a_filter_that_cannot_be_is_refused(engine: Engine, parts: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        await engine.inspect.list(JobFilter(**parts))


async def test_one_producers_odd_headers_do_not_spoil_the_list(engine: Engine, clock: Clock) -> None:
    await engine.jobs.enqueue([a_job(task="good", headers=b'{"tags":["red"]}')], now=clock.now)
    for odd in (b"\xff not JSON", b"[1]", b'{"tags":7}', b'{"tags":[["red"]]}'):
        with suppress(BadInput):  # refused at the edge: as good
            await engine.jobs.enqueue([a_job(task="odd", headers=odd)], now=clock.now)
    assert await filtered(engine, tag="red") == ["good"]


async def test_text_is_found_in_the_last_error(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job(task="a"), a_job(task="b")], now=clock.now)
    first, second = await claimant.take()
    await claimant.fail(first, failure=a_failure("the card was refused"))
    await claimant.fail(second, failure=a_failure("the Card was refused"))
    assert await filtered(engine, text="card was", state=JobState.DEAD) == ["a"]


@pytest.mark.row("C3")
async def test_a_scan_is_bounded(engine: Engine, clock: Clock) -> None:
    total = SCAN_LIMIT + BATCH_LIMIT
    for _ in range(total // BATCH_LIMIT):
        await engine.jobs.enqueue(some_jobs(BATCH_LIMIT), now=clock.now)
    needle = a_job(task="needle")
    await engine.jobs.enqueue([needle], now=clock.now)
    only = JobFilter(task="needle")
    page = await engine.inspect.list(only)
    scanned = page.scanned
    assert page.scanned <= SCAN_LIMIT
    found = ids_of(page.jobs)
    while page.cursor:
        page = await engine.inspect.list(only, cursor=page.cursor)
        assert page.scanned <= SCAN_LIMIT
        scanned += page.scanned
        found += ids_of(page.jobs)
    assert found == [needle.id]
    assert scanned <= total + 1


async def test_no_more_is_said_only_at_the_end(engine: Engine, clock: Clock) -> None:
    assert (await engine.inspect.list(JobFilter())).cursor is None
    await engine.jobs.enqueue(some_jobs(5), now=clock.now)
    assert (await engine.inspect.list(JobFilter(), limit=4)).cursor is not None
    assert (await engine.inspect.list(JobFilter(), limit=6)).cursor is None
