"""The forms of a record: those of a job with nothing about it, and where it has to leave them."""

from collections.abc import Iterator

import pytest

from tests.integration.redis.conftest import Command, Connect
from tests.servers.redis import RedisServer
from tidemill.engines.redis.db import scripts
from tidemill.engines.redis.engine import RedisEngine
from tidemill.engines.redis.jobs.tail import INLINE
from tidemill.model.errors import EngineDamaged
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobState
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.run import Answer, Claim
from tidemill.model.queues.queue import Keep, Limit, QueueOptions
from tidemill.model.time import HOUR, MINUTE
from tidemill.testing.contract.fixtures import (
    Claimant,
    Clock,
    a_claimant,
    a_job,
    completed,
    configure,
    ids_of,
    job_of,
    some_jobs,
)

pytestmark = pytest.mark.row("A2")

SIZES = [1, INLINE, INLINE + 1, 20_000]


@pytest.mark.parametrize("size", [0, *SIZES])
async def test_a_body_comes_back_whole_whether_it_stands_in_the_record_or_apart(
    engine: RedisEngine, claimant: Claimant, size: int
) -> None:
    body, headers = bytes(range(256)) * (size // 256) + b"\r" * (size % 256), b'{"h":1}'
    said = Retry(attempts=3, on=("builtins.OSError",))
    job = a_job(body=body, headers=headers, key="k", timeout=5, retry=said, on_dead="o", priority=7)
    await engine.jobs.enqueue([a_job(), job, a_job()])
    taken = {each.id: each for each in await claimant.take()}[job.id]
    assert (taken.body, taken.headers, taken.key, taken.timeout) == (body, headers, "k", 5)
    assert (taken.retry, taken.on_dead, taken.priority, taken.attempt) == (said, "o", 7, 1)
    assert (await job_of(engine, job.id)).body == body


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("keep", [True, False])
async def test_a_result_is_kept_or_dropped_with_the_body(
    engine: RedisEngine, claimant: Claimant, command: Command, size: int, keep: bool
) -> None:
    await configure(engine, "q", QueueOptions(keep_body=keep))
    await engine.jobs.enqueue(some_jobs(3, body=b"b" * size))
    jobs = await claimant.take()
    await claimant.settle(*(completed(job, b"r" * size, ran=7) for job in jobs))
    for job in jobs:
        found = await job_of(engine, job.id)
        assert (found.body, found.result) == ((b"b" * size, b"r" * size) if keep else (None, None))
        assert (found.state, found.attempts, found.fence) == (JobState.COMPLETED, 1, job.fence)
        assert (found.started_at, found.ended_at) == (claimant.clock.now - 7, claimant.clock.now)
    apart = b":3\r\n" if keep and size > INLINE else b":0\r\n"
    assert command("HLEN", "{tidemill}:body") == command("HLEN", "{tidemill}:result") == apart


@pytest.mark.parametrize("limit", [None, 5])
async def test_a_queue_that_keeps_nothing_leaves_no_bodies_and_results(
    engine: RedisEngine, claimant: Claimant, command: Command, limit: int | None
) -> None:
    """Of jobs that ended well, and of a child whose parent had died before it came."""
    nothing = Keep(count=0)
    options = QueueOptions(
        concurrency=limit, keep_completed=nothing, keep_dead=nothing, keep_cancelled=nothing
    )
    await configure(engine, "q", options)
    large = b"b" * (INLINE + 1)
    dead, *jobs = some_jobs(3, body=large)
    await engine.jobs.enqueue([dead, *jobs])
    failed, *others = await claimant.take()
    await claimant.fail(failed)
    await claimant.settle(*(completed(job, each) for job, each in zip(others, (large, b"r"), strict=True)))
    child = a_job(body=large, after=(dead.id,))
    await engine.jobs.enqueue([child])
    (ended,) = await engine.jobs.watch([child.id], waiter="w", ttl=MINUTE)
    assert ended is not None
    assert ended.state is JobState.CANCELLED
    for key in ("body", "result"):
        assert command("HLEN", "{tidemill}:" + key) == b":0\r\n", key


async def test_a_queue_that_gets_a_limit_meanwhile_counts_what_runs_and_frees_it(
    engine: RedisEngine, claimant: Claimant
) -> None:
    await engine.jobs.enqueue(some_jobs(4))
    first = await claimant.take(most=2)
    await configure(engine, "q", QueueOptions(concurrency=2, per_key=Limit(concurrency=9)))
    assert await claimant.take() == []
    assert (await claimant.settle(completed(first[0]))).answers == [Answer.APPLIED]
    (third,) = await claimant.take()
    await claimant.settle(completed(first[1]), completed(third))
    assert len(await claimant.take()) == 1


async def test_queues_take_turns_on_the_plain_way(engine: RedisEngine, claimant: Claimant) -> None:
    jobs = {name: some_jobs(3, queue=name) for name in "abc"}
    await engine.jobs.enqueue([*jobs["c"], *jobs["a"], *jobs["b"][:1]])
    a, b, c = (ids_of(jobs[name]) for name in "abc")
    assert ids_of(await claimant.take("c", "b", "a", most=4)) == [a[0], b[0], c[0], a[1]]
    assert ids_of(await claimant.take("a", "b", "c", most=9)) == [c[1], a[2], c[2]]


async def test_the_name_of_a_member_may_be_longer_than_the_form_allows(
    engine: RedisEngine, clock: Clock
) -> None:
    claimant = Claimant(engine, clock, name="m" * 300)
    await claimant.heartbeat()
    await engine.jobs.enqueue(some_jobs(2))
    jobs = await claimant.take()
    assert (await claimant.settle(*map(completed, jobs))).answers == [Answer.APPLIED] * 2
    assert (await job_of(engine, jobs[0].id)).member == "m" * 300


async def test_the_same_job_twice_in_one_settle(engine: RedisEngine, claimant: Claimant) -> None:
    await engine.jobs.enqueue(some_jobs(1))
    (job,) = await claimant.take()
    settled = await claimant.settle(completed(job, b"1"), completed(job, b"2"))
    assert settled.answers == [Answer.APPLIED, Answer.ALREADY]
    assert (await job_of(engine, job.id)).result == b"1"


@pytest.fixture
def in_small_parts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Spans are read a few numbers at a time."""
    right, large = scripts.source, "local HOUR, BUDGET = 60 * MINUTE, 10000"
    assert large in right("ended")
    monkeypatch.setattr(scripts, "source", lambda name: right(name).replace(large, large[:-5] + "5"))
    scripts.script.cache_clear()
    yield
    scripts.script.cache_clear()


@pytest.mark.usefixtures("in_small_parts")
async def test_a_long_span_is_counted_in_parts(engine: RedisEngine, claimant: Claimant, clock: Clock) -> None:
    begin, times = clock.now - clock.now % HOUR, []
    for _ in range(6):
        times.append(clock.now)
        await engine.jobs.enqueue([a_job(queue="a"), a_job(queue="a"), a_job(queue="b")], now=clock.now)
        await claimant.heartbeat()
        await claimant.settle(*map(completed, await claimant.take("a", "b")))
        clock.forward(45 * 60)

    def sums(step: int, each: int) -> dict[int, int]:
        found: dict[int, int] = {}
        for at in times:
            found[at - at % step] = found.get(at - at % step, 0) + each
        return found

    until, trips = clock.now + HOUR, engine.store.trips
    for step in (MINUTE, HOUR):
        for queue, each in ((None, 3), ("a", 2), ("b", 1)):
            points = await engine.inspect.series(since=begin, until=until, step=step, queue=queue)
            ended = {point.at: point.finished.completed for point in points if point.finished.completed}
            assert ended == sums(step, each)
    assert engine.store.trips - trips > 12
    for window in (12 * HOUR, 3 * HOUR):
        each = sum(at >= clock.now - clock.now % MINUTE - window + MINUTE for at in times)
        counts = {found.queue: found for found in await engine.inspect.counts(window=window, now=clock.now)}
        assert (counts["a"].window.completed, counts["b"].window.completed) == (2 * each, each)
        assert (counts["a"].completed, counts["b"].completed) == (12, 6)


async def test_a_claim_that_takes_nothing_scans_once_and_writes_nothing(
    own_server: RedisServer, connect: Connect, clock: Clock
) -> None:
    engine = await connect(own_server.url())
    claimant = await a_claimant(engine, clock)
    late = a_job(delay=MINUTE)
    await engine.jobs.enqueue([a_job(), late], now=clock.now)
    await claimant.complete(*await claimant.take("q", "other"))

    def info(section: str, field: str) -> list[str]:
        lines = own_server.command("INFO", section).decode().splitlines()
        return [line for line in lines if line.startswith(field)]

    scans, changes = info("commandstats", "cmdstat_zrangebylex"), info("persistence", "rdb_changes_since")
    for _ in range(3):
        assert await claimant.claim("q", "other") == Claim([], MINUTE, clock.now)
    assert info("commandstats", "cmdstat_zrangebylex") == scans, "no lane is open, and that was known"
    assert info("persistence", "rdb_changes_since") == changes
    assert (await claimant.claim(most=0)).wait is None
    clock.forward(60)
    assert ids_of(await claimant.take()) == [late.id]


@pytest.mark.parametrize("limit", [None, 5])
async def test_a_job_without_a_record_is_damage(
    engine: RedisEngine, claimant: Claimant, command: Command, limit: int | None
) -> None:
    """A repeat would not help: whoever waits for an engine that is away must not wait for this."""
    await configure(engine, "q", QueueOptions(concurrency=limit))
    await engine.jobs.enqueue(some_jobs(2))
    command("ZADD", "{tidemill}:r/q/5/0/", "0", "x" * 16)
    for _ in range(2):
        with pytest.raises(EngineDamaged, match=f"job {(b'x' * 16).hex()} stands .* restore a backup"):
            await claimant.take()
    command("ZREM", "{tidemill}:r/q/5/0/", "x" * 16)
    assert len(await claimant.take()) == 2


async def test_a_record_that_cannot_be_read_is_damage(engine: RedisEngine, command: Command) -> None:
    job = a_job()
    for raw in ("E", "Rxyz", "{"):
        command("HSET", "{tidemill}:job", "x" * 16, raw)
        with pytest.raises(EngineDamaged, match="restore a backup"):
            await engine.inspect.get([JobId(b"x" * 16)])
    command("HSET", "{tidemill}:n", "seq", "many")
    with pytest.raises(EngineDamaged, match="not an integer"):
        await engine.jobs.enqueue([job])
