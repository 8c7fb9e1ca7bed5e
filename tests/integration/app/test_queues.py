"""`app.queues`: what operators change at run time, beside running workers of another program."""

import asyncio
import time
from collections.abc import Iterator

import pytest

from tests.engines import SHARED
from tidemill import BadInput, QueueChanged, Rate, Refused, Tidemill, UnknownQueue

CEILING_S = 2.5
"""Usual are some milliseconds. It lies below the 5 s after which a worker polls without a signal."""


@pytest.fixture(params=SHARED)
def engine_mode(request: pytest.FixtureRequest) -> str:
    """Which engine; in memory there is nothing for a second program."""
    mode: str = request.param
    return mode


@pytest.fixture
def other(app: Tidemill) -> Iterator[Tidemill]:
    """Another program on the same engine, which has no task and declares nothing."""
    made = Tidemill(app.url)
    yield made
    made.close()


async def started(semaphore: asyncio.Semaphore, count: int) -> float:
    """Wait until so many more have started; how long that took."""
    began = time.monotonic()
    async with asyncio.timeout(30):
        for _ in range(count):
            await semaphore.acquire()
    return time.monotonic() - began


@pytest.mark.every_engine
@pytest.mark.row("F17")
async def test_changes_of_another_program_reach_a_running_worker(app: Tidemill, other: Tidemill) -> None:
    starts, end = asyncio.Semaphore(0), asyncio.Event()
    app.queue("email", concurrency=1, per_worker=4)

    @app.task(queue="email")
    async def send() -> None:
        starts.release()
        await end.wait()

    @app.task
    async def ping() -> None: ...

    async with app.worker(slots=8):
        jobs = [await send.aenqueue() for _ in range(8)]
        await started(starts, 1)
        await other.queues.aset("email", concurrency=3, by="ann", why="they have a second server")
        assert await started(starts, 2) < CEILING_S
        await other.queues.aset("email", concurrency=None)
        assert await started(starts, 1) < CEILING_S  # none of the whole cluster, four of this process
        await other.queues.aset("email", per_worker=5)
        assert await started(starts, 1) < CEILING_S
        await other.queues.apause("email", by="bob", why="moving")
        end.set()
        for job in jobs[:5]:
            await job.aresult(timeout=30)
        await (await ping.aenqueue()).aresult(timeout=30)  # a claim that asked for both queues
        assert [(await job.ainfo()).state for job in jobs[5:]] == ["ready"] * 3
        queue = await other.queues.aget("email")
        assert (queue.paused_by, queue.paused_why) == ("bob", "moving")
        began = time.monotonic()
        await other.queues.aresume("email")
        for job in jobs[5:]:
            await job.aresult(timeout=30)
        assert time.monotonic() - began < CEILING_S
    await app.aclose()
    await other.aclose()


@pytest.mark.every_engine
@pytest.mark.row("F17")
async def test_what_was_set_survives_deploys_and_stands_beside_what_is_declared(
    app: Tidemill, other: Tidemill
) -> None:
    app.queue("email", concurrency=10, rate="100/m")

    @app.task(queue="email")
    async def send() -> None: ...

    async with app.worker():
        await (await send.aenqueue()).aresult(timeout=30)  # so the worker has published its queues
        await other.queues.aset("email", concurrency=2, by="ann", why="their server is slow")
    async with app.worker():  # a deploy
        await (await send.aenqueue()).aresult(timeout=30)
        queue = await other.queues.aget("email")
    assert (queue.options.concurrency, queue.declared.concurrency) == (2, 10)
    assert queue.options.rate == queue.declared.rate == Rate(100, per=60)
    [(option, said)] = queue.overrides.items()
    assert (option, said.value, said.by, said.why) == ("concurrency", 2, "ann", "their server is slow")
    assert len(queue.apps) == 1
    with pytest.raises(QueueChanged, match="read them again"):
        await other.queues.areset("email", version=queue.version - 1)
    await other.queues.areset("email", "concurrency", version=queue.version)
    queue = await other.queues.aget("email")
    assert (queue.options.concurrency, queue.overrides) == (10, {})
    await app.aclose()
    await other.aclose()


@pytest.mark.row("F17")
def test_from_code_that_blocks(app: Tidemill) -> None:
    @app.task(queue="email")
    def send() -> None: ...

    send.enqueue()
    app.queues.set("email", per_task={send: 2}, per_key=3, weights={"gold": 5}, keep=0)
    queue = app.queues.get("email")
    assert [each.name for each in app.queues.list()] == ["email"]
    assert queue.options.per_task[send.name].concurrency == 2
    assert set(queue.overrides) == {"per_task", "per_key", "weights", "keep_completed", "keep_cancelled"}
    assert queue.overrides["weights"].value == {"gold": 5}
    assert queue.overrides["weights"].by.startswith("app:")
    app.queues.pause("email", why="moving")
    assert app.queues.get("email").paused_why == "moving"
    app.queues.resume("email")
    assert app.queues.get("email").paused_at is None
    app.queues.reset("email", "keep")
    assert set(app.queues.get("email").overrides) == {"per_task", "per_key", "weights"}
    app.queues.reset("email")
    assert app.queues.get("email").overrides == {}


@pytest.mark.row("F17")
def test_what_makes_no_sense_is_refused(app: Tidemill) -> None:
    @app.task(queue="email")
    def send() -> None: ...

    send.enqueue()
    for refused in (
        lambda: app.queues.set("emial", concurrency=2),
        lambda: app.queues.reset("emial"),
        lambda: app.queues.pause("emial"),
        lambda: app.queues.retire("emial", "shop:app"),
        lambda: app.queues.resume("emial"),
        lambda: app.queues.get("emial"),
    ):
        with pytest.raises(UnknownQueue, match=r"there is no queue 'emial'; did you mean 'email'\?"):
            refused()
    with pytest.raises(BadInput, match=r"no option 'rte'; did you mean 'rate'\?"):
        app.queues.reset("email", "rte")
    with pytest.raises(Refused, match="says nothing of the queue 'email'"):
        app.queues.retire("email", "shop:app")
    with pytest.raises(BadInput, match="an override that contradicts what is in force"):
        app.queues.set("email", weights={"gold": 5})
    assert app.queues.get("email").version == 0
