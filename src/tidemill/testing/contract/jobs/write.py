"""`jobs.write`: starts, progress, log lines and checkpoints, under the fence of the run."""

import pytest

from tidemill.engine.protocol import Engine
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.run import (
    LOG_LINES_KEPT,
    Answer,
    Checkpoint,
    LogLine,
    Note,
    Progress,
    Started,
    StoredLine,
)
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_job,
    job_of,
    snapshot,
    some_jobs,
)

APPLIED, STALE = Answer.APPLIED, Answer.STALE


def a_log_line(number: int, message: str = "hello") -> LogLine:
    return LogLine(number=number, level="info", message=message)


async def test_half_a_character_in_a_line_is_spelled_out(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    """Running code writes what it likes: a file name that is not UTF-8, say."""
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    assert await claimant.write(run, a_log_line(1, "no \udcff.txt"), a_log_line(2, "a\0b")) == [APPLIED] * 2
    stored = [each.message for each in await engine.inspect.log(run.id)]
    assert stored == ["no \\udcff.txt", "a\0b"]


async def test_each_kind_is_kept(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    clock.forward(1)
    entries = (Started(), Progress(value=b'{"n":1}'), a_log_line(1), Checkpoint(name="charge", value=b"7"))
    assert await claimant.write(run, *entries) == [APPLIED] * 4
    job = await job_of(engine, run.id)
    assert (job.state, job.started_at, job.progress) == (JobState.RUNNING, clock.now, b'{"n":1}')
    assert await engine.inspect.log(run.id) == [StoredLine(run.fence, 1, clock.now, "info", "hello")]
    assert await engine.inspect.checkpoints(run.id) == [Checkpoint(name="charge", value=b"7")]


async def test_the_latest_progress_and_the_first_start_stay(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    started = clock.now
    for number in (b"1", b"2", b"3"):
        await claimant.write(run, Started(), Progress(value=number))
        clock.forward(1)
    job = await job_of(engine, run.id)
    assert (job.started_at, job.progress) == (started, b"3")


async def test_a_line_is_known_by_its_number(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await claimant.write(run, a_log_line(1, "one"), a_log_line(2, "two"))
    clock.forward(1)
    assert await claimant.write(run, a_log_line(2, "again"), a_log_line(3, "three")) == [APPLIED, APPLIED]
    log = await engine.inspect.log(run.id)
    assert [(stored.number, stored.message) for stored in log] == [(1, "one"), (2, "two"), (3, "three")]


async def test_lines_stand_in_the_order_of_fence_and_number(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    first = await claimant.take_one()
    await claimant.write(first, a_log_line(2), a_log_line(1))
    await claimant.release(first)
    second = await claimant.take_one()
    await claimant.write(second, a_log_line(1))
    log = await engine.inspect.log(first.id)
    expected = [(first.fence, 1), (first.fence, 2), (second.fence, 1)]
    assert [(stored.fence, stored.number) for stored in log] == expected
    assert await engine.inspect.log(first.id, after=1, limit=1) == log[1:2]


async def test_the_newest_lines_are_kept(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    run = await claimant.take_one()
    await claimant.write(run, *(a_log_line(n) for n in range(1, 901)))
    await claimant.write(run, *(a_log_line(n) for n in range(901, 1_251)))
    numbers = [stored.number for stored in await engine.inspect.log(run.id)]
    assert numbers == list(range(251, 1_251))
    assert len(numbers) == LOG_LINES_KEPT


async def test_the_first_value_of_a_checkpoint_stays(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    first = await claimant.take_one()
    await claimant.write(first, Checkpoint(name="b", value=b"1"), Checkpoint(name="a", value=b"1"))
    await claimant.fail(first, retry_in=0)
    second = await claimant.take_one()
    answers = await claimant.write(second, Checkpoint(name="b", value=b"2"), Checkpoint(name="c", value=b"2"))
    assert answers == [APPLIED, APPLIED]
    assert await engine.inspect.checkpoints(first.id) == [
        Checkpoint(name="b", value=b"1"),
        Checkpoint(name="a", value=b"1"),
        Checkpoint(name="c", value=b"2"),
    ]


async def test_a_new_run_has_not_started_yet(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue([a_job()], now=clock.now)
    first = await claimant.take_one()
    await claimant.write(first, Started())
    await claimant.release(first)
    await claimant.take_one()
    assert (await job_of(engine, first.id)).started_at is None


@pytest.mark.row("B6")
async def test_only_the_holder_writes(engine: Engine, clock: Clock, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(3), now=clock.now)
    released, settled, running = await claimant.take()
    await claimant.release(released)
    await claimant.complete(settled)
    everything = (Started(), Progress(value=b"9"), a_log_line(1), Checkpoint(name="a", value=b"1"))
    notes = [
        Note(id=job_id, fence=fence, entry=entry)
        for job_id, fence in [
            (released.id, released.fence),
            (settled.id, settled.fence),
            (running.id, settled.fence),
            (new_id(), running.fence),
        ]
        for entry in everything
    ]
    clock.forward(1)
    before = await snapshot(engine, clock)
    assert await engine.jobs.write(notes, now=clock.now) == [STALE] * len(notes)
    assert await snapshot(engine, clock) == before


async def test_a_stale_note_does_not_hold_back_the_others(
    engine: Engine, clock: Clock, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(2), now=clock.now)
    gone, run = await claimant.take()
    await claimant.release(gone, delay=SECOND)
    notes = [Note(id=job.id, fence=job.fence, entry=Progress(value=b"5")) for job in (gone, run)]
    assert await engine.jobs.write(notes, now=clock.now) == [STALE, APPLIED]
    assert (await job_of(engine, run.id)).progress == b"5"
    assert (await job_of(engine, gone.id)).progress is None
