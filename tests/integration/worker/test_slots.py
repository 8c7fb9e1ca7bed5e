"""How many at once, in which order, and how little is held beyond that."""

import asyncio
import threading

import pytest

from tests.integration.worker.workplace import Workplace
from tidemill.model.jobs.job import JobState
from tidemill.model.queues.queue import Limit, QueueOptions, Rate
from tidemill.task.current import current_job
from tidemill.testing.contract.fixtures import configure


class Crowd:
    """Counts who is inside, from the loop or from threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.inside = self.most = 0

    def __enter__(self) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.inside -= 1


@pytest.mark.every_engine
@pytest.mark.row("A7")
async def test_at_most_so_many_run_at_once_on_the_loop(workplace: Workplace) -> None:
    crowd, full = Crowd(), asyncio.Event()

    async def works() -> None:
        with crowd:
            if crowd.inside == 3:
                full.set()
            await full.wait()
            await asyncio.sleep(0)

    workplace.task(works)
    worker = await workplace.start(slots=3)
    held: list[int] = []
    note = worker.moments.note

    def check(moment: object, times: int = 1) -> None:
        held.append(workplace.held())
        note(moment, times)  # type: ignore[arg-type]

    worker.moments.note = check  # type: ignore[method-assign]
    ids = await workplace.enqueue_many("works", times=200)
    await workplace.settled(200)
    assert set(await workplace.states(ids)) == {JobState.COMPLETED}
    assert crowd.most == 3
    assert max(held) <= 3 * 4, "running, waiting, and as many on their way to the engine"


@pytest.mark.row("A7")
async def test_at_most_so_many_run_at_once_in_threads(workplace: Workplace) -> None:
    crowd, full = Crowd(), threading.Event()

    def works() -> None:
        with crowd:
            if crowd.inside == 3:
                full.set()
            full.wait()

    workplace.task(works)
    worker = await workplace.start(slots=3)
    await workplace.enqueue_many("works", times=100)
    await workplace.settled(100)
    assert crowd.most == 3
    assert worker._threads.threads == 3


@pytest.mark.every_engine
@pytest.mark.row("A7")
async def test_slow_jobs_are_not_claimed_ahead(workplace: Workplace) -> None:
    end, started = asyncio.Event(), asyncio.Semaphore(0)

    async def slow() -> None:
        started.release()
        await end.wait()

    workplace.task(slow)
    await workplace.start(slots=2)
    ids = await workplace.enqueue_many("slow", times=6)
    for _ in range(2):
        await started.acquire()
    states = await workplace.states(ids)
    assert states.count(JobState.RUNNING) == 2
    assert states.count(JobState.READY) == 4
    end.set()
    await workplace.settled(6)


@pytest.mark.every_engine
@pytest.mark.row("E2")
async def test_urgent_jobs_do_not_wait_behind_a_burst(workplace: Workplace) -> None:
    """One slot, fifty unimportant jobs waiting: urgent ones that come later are next."""
    order: list[int] = []
    first, go = asyncio.Event(), asyncio.Event()

    async def works() -> None:
        order.append(current_job().priority)
        first.set()
        await go.wait()

    workplace.task(works)
    await workplace.start(slots=1)
    await workplace.enqueue_many("works", times=50, priority=9)
    await first.wait()
    await workplace.enqueue_many("works", times=5, priority=0)
    go.set()
    await workplace.settled(55)
    assert order == [9, *[0] * 5, *[9] * 49]


@pytest.mark.row("E2")
async def test_what_was_claimed_ahead_starts_by_priority(workplace: Workplace) -> None:
    order: list[int] = []
    first, go = asyncio.Event(), asyncio.Event()

    async def works() -> None:
        order.append(current_job().priority)
        first.set()
        await go.wait()

    workplace.task(works)
    worker = await workplace.start(slots=1)
    await workplace.enqueue("works", priority=5)
    await first.wait()
    for count, priority in enumerate((9, 0), start=2):
        workplace.claim_ahead(2)
        await workplace.enqueue("works", priority=priority)
        await worker.moments.reached("claimed", count)
    go.set()
    await workplace.settled(3)
    assert order == [5, 0, 9]


async def test_jobs_under_a_limit_are_never_claimed_ahead(workplace: Workplace) -> None:
    started, end = asyncio.Semaphore(0), asyncio.Event()

    async def works() -> None:
        started.release()
        await end.wait()

    workplace.task(works)
    await workplace.queue("narrow", concurrency=100)
    worker = await workplace.start(slots=2)
    await workplace.enqueue_many("works", times=2, queue="narrow")
    for _ in range(2):
        await started.acquire()
    workplace.claim_ahead(2)
    waiting = await workplace.enqueue_many("works", times=2, queue="narrow")
    waiting += [await workplace.enqueue("works")]  # of a queue without limits: it would take their slot
    worker._unsettled.claim_soon()
    assert worker._claims.request(anyway=True) is None
    end.set()
    await workplace.settled(5)
    assert worker.moments.count("released") == 0
    assert await workplace.states(waiting) == [JobState.COMPLETED] * 3


@pytest.mark.parametrize("plain", [(), ("plain",)], ids=["limits only", "mixed"])
async def test_several_queues_under_limits_give_no_more_than_there_are_slots(
    workplace: Workplace, plain: tuple[str, ...]
) -> None:
    """What is released has used a permit of its rate for nothing."""
    limited = ("a", "b", "c")

    async def works() -> None:
        await asyncio.sleep(0)

    workplace.task(works)
    for queue in limited:
        await workplace.queue(queue, rate=Rate(100_000, per=3_600.0))
    for queue in (*limited, *plain):
        await workplace.enqueue_many("works", times=150, queue=queue)
    worker = await workplace.start(slots=5, queues=(*limited, *plain))
    workplace.claim_ahead(5)
    await workplace.settled(150 * len((*limited, *plain)))
    assert worker.moments.count("released") == 0


async def test_a_busy_queue_gets_the_slots_that_idle_ones_do_not_use(workplace: Workplace) -> None:
    """Under limits as well, and although each was asked for a share only."""
    started, end = asyncio.Semaphore(0), asyncio.Event()

    async def works() -> None:
        started.release()
        await end.wait()

    workplace.task(works)
    for queue in ("a", "b", "c"):
        await workplace.queue(queue, concurrency=100)
    await workplace.start(slots=8, queues=("a", "b", "c", "plain"))
    workplace.claim_ahead(8)
    await workplace.idle()
    await workplace.enqueue_many("works", times=8, queue="a")
    for _ in range(8):
        await started.acquire()
    end.set()
    await workplace.settled(8)


async def test_a_backlog_without_limits_does_not_keep_a_limited_queue_waiting(workplace: Workplace) -> None:
    """Whatever is claimed ahead would take each slot that becomes free; queues share them in turn."""
    order: list[str] = []

    async def works() -> None:
        order.append(current_job().queue)

    workplace.task(works)
    await workplace.queue("limited", rate=Rate(100_000, per=3_600.0))
    for queue in ("limited", "plain"):
        await workplace.enqueue_many("works", times=200, queue=queue)
    await workplace.start(slots=4, queues=("limited", "plain"))
    workplace.claim_ahead(4)
    await workplace.settled(400)
    assert order[:350].count("limited") >= 150, order


@pytest.mark.every_engine
async def test_a_job_under_a_limit_that_finds_no_slot_is_released(workplace: Workplace) -> None:
    """Two queues, which an operator has put under limits that the worker has not read yet, are asked for
    the one free slot and one that may wait; both give."""
    started, end = asyncio.Semaphore(0), asyncio.Event()

    async def works() -> None:
        started.release()
        await end.wait()

    workplace.task(works)
    for queue in ("one", "two"):
        await configure(workplace.engine, queue, QueueOptions(concurrency=100))
    ids = [await workplace.enqueue("works", queue=queue) for queue in ("one", "two")]
    await workplace.start(slots=1, queues=("one", "two"))
    workplace.read_no_options()
    workplace.claim_ahead(1)
    await workplace.released()
    states = await workplace.states(ids)
    assert sorted(filter(None, states)) == [JobState.READY, JobState.RUNNING]
    end.set()
    await workplace.settled(2)


async def test_a_limit_of_each_worker_is_kept(workplace: Workplace) -> None:
    crowd = Crowd()

    async def works() -> None:
        with crowd:
            for _ in range(3):
                await asyncio.sleep(0)

    workplace.task(works)
    await workplace.queue("careful", per_worker=Limit(concurrency=2))
    await workplace.start(slots=8)
    await workplace.enqueue_many("works", times=40, queue="careful")
    await workplace.settled(40)
    assert crowd.most <= 2


async def test_the_queues_of_a_worker_are_the_only_ones_it_takes_from(workplace: Workplace) -> None:
    async def works() -> None: ...

    workplace.task(works)
    await workplace.start(queues=("mine",))
    mine = await workplace.enqueue("works", queue="mine")
    other = await workplace.enqueue("works", queue="other")
    await workplace.settled()
    assert await workplace.states([mine, other]) == [JobState.COMPLETED, JobState.READY]


@pytest.mark.every_engine
async def test_delayed_jobs_start_when_they_are_due_without_a_signal(workplace: Workplace) -> None:
    async def works() -> None: ...

    workplace.task(works)
    await workplace.start()  # its safety poll is a minute away
    job_id = await workplace.enqueue("works", delay=50_000)
    await workplace.settled()
    job = await workplace.job(job_id)
    assert job.started_at is not None
    assert job.due_at is None or job.started_at >= job.due_at


async def test_each_run_has_a_context_of_its_own(workplace: Workplace) -> None:
    from contextvars import ContextVar

    mine: ContextVar[str] = ContextVar("mine", default="untouched")
    seen: list[str] = []

    async def on_the_loop() -> None:
        seen.append(mine.get())
        mine.set("by the loop")

    def in_a_thread() -> None:
        seen.append(mine.get())
        mine.set("by a thread")

    workplace.task(on_the_loop)
    workplace.task(in_a_thread)
    await workplace.start(slots=1)
    await workplace.enqueue_many("on_the_loop", times=4)
    await workplace.enqueue_many("in_a_thread", times=4)
    await workplace.settled(8)
    assert set(seen) == {"untouched"}


@pytest.mark.every_engine
async def test_a_change_of_the_limit_of_each_worker_process_reaches_it(workplace: Workplace) -> None:
    """By the signal, without a heartbeat; the app's code says something else."""
    started, end = asyncio.Semaphore(0), asyncio.Event()

    async def works() -> None:
        started.release()
        await end.wait()

    workplace.task(works)
    await workplace.queue("careful", per_worker=Limit(concurrency=1))
    await workplace.start(slots=8, queues=("careful",))
    await workplace.enqueue_many("works", times=8, queue="careful")
    await started.acquire()
    await workplace.engine.queues.override("careful", {"per_worker": {"concurrency": 3}}, by="ann")
    for _ in range(2):
        await started.acquire()
    await workplace.engine.queues.override("careful", {"per_worker": None}, by="ann")
    for _ in range(5):
        await started.acquire()
    end.set()
    await workplace.settled(8)


async def test_a_change_whose_signal_is_lost_comes_with_the_next_heartbeat(workplace: Workplace) -> None:
    started, end = asyncio.Semaphore(0), asyncio.Event()

    async def works() -> None:
        started.release()
        await end.wait()

    workplace.task(works)
    await workplace.queue("careful", per_worker=Limit(concurrency=1))
    await workplace.start(slots=8, queues=("careful",))
    workplace.worker._options.changed = lambda: None  # type: ignore[method-assign]
    await workplace.heartbeat()
    await workplace.enqueue_many("works", times=2, queue="careful")
    await started.acquire()
    await workplace.engine.queues.override("careful", {"per_worker": {"concurrency": 2}}, by="ann")
    await workplace.heartbeat()
    await started.acquire()
    end.set()
    await workplace.settled(2)
