"""`async with app:`: the program's own loop has an engine of its own.

What is in memory is gone with the last engine that has it open: not where a test looks after the block."""

import asyncio
import os
import threading
from collections.abc import Iterator
from itertools import pairwise

import msgspec
import pytest

from tests.engines import SHARED
from tests.integration.app.claimer import Hand, taken, with_hand
from tidemill import EngineUnavailable, Tidemill
from tidemill.app.access.session import EngineSession
from tidemill.app.task import Call
from tidemill.model.jobs.run import ClaimedJob

outside_memory = pytest.mark.parametrize("engine_mode", SHARED, indirect=True)


async def where(session: EngineSession) -> tuple[EngineSession, asyncio.AbstractEventLoop, threading.Thread]:
    """What a call works with."""
    return session, asyncio.get_running_loop(), threading.current_thread()


async def all_of(hand: Hand) -> list[ClaimedJob]:
    return [job for _ in range(3) for job in await hand.take(most=1_000)]


async def session_of(app: Tidemill) -> EngineSession:
    return (await app._link.run(where))[0]


@outside_memory
async def test_in_the_block_calls_stay_on_the_loop(app: Tidemill) -> None:
    task = app.task(name="t")(lambda n: n)
    async with app as same:
        assert same is app
        _, loop, thread = await app._link.run(where)
        assert (loop, thread) == (asyncio.get_running_loop(), threading.current_thread())
        job = await task.aenqueue(1)
        assert (await job.ainfo()).args == (1,)
        assert app._link._portal is None
    _, loop, thread = await app._link.run(where)
    assert loop is not asyncio.get_running_loop()
    assert thread is not threading.current_thread()
    assert (await job.ainfo()).args == (1,)


async def test_blocks_of_one_loop_share_an_engine_and_the_last_one_out_closes_it(app: Tidemill) -> None:
    first_out, second_in = asyncio.Event(), asyncio.Event()

    async def first() -> EngineSession:
        async with app:
            async with app:
                await second_in.wait()
            session = await session_of(app)
        first_out.set()
        return session

    async def second() -> EngineSession:
        async with app:
            second_in.set()
            await first_out.wait()
            session = await session_of(app)
            assert not session.producer._closed
            return session

    one, other = await asyncio.gather(first(), second())
    assert one is other
    assert one.producer._closed
    async with app:
        assert await session_of(app) is not one


@pytest.mark.every_engine
@outside_memory
async def test_every_loop_has_its_own(app: Tidemill) -> None:
    task = app.task(name="t")(lambda n: n)
    sessions = []

    async def use(number: int) -> None:
        async with app:
            sessions.append(await session_of(app))
            await task.aenqueue(number)
            assert sessions[-1].loop is asyncio.get_running_loop()

    async with app:
        sessions.append(await session_of(app))
        await task.aenqueue(0)
        await asyncio.to_thread(lambda: asyncio.run(use(1)))
        assert await session_of(app) is sessions[0]
    assert sessions[0] is not sessions[1]
    assert sorted(msgspec.json.decode(job.body)[0][0] for job in await taken(app)) == [0, 1]


@pytest.mark.every_engine
@outside_memory
async def test_enqueues_already_made_are_finished_when_it_ends(app: Tidemill) -> None:
    task = app.task(name="t")(lambda n: n)
    async with app:
        made = [asyncio.ensure_future(task.aenqueue(number)) for number in range(50)]
        await asyncio.sleep(0)
    jobs = await asyncio.gather(*made)
    assert [(await job.ainfo()).args for job in jobs[-2:]] == [(48,), (49,)]


async def test_a_result_is_awaited_on_the_loop_and_outlives_a_worker(app: Tidemill) -> None:
    started, hold = asyncio.Event(), asyncio.Event()

    @app.task(name="t")
    async def task(number: int) -> int:
        started.set()
        await hold.wait()
        return number + 1

    async with app:
        async with app.worker():
            inside = await session_of(app)
            job = await task.aenqueue(41)
            waiting = asyncio.ensure_future(job.aresult(30))
            await started.wait()
            hold.set()
        assert await session_of(app) is inside
        assert await waiting == 42


async def test_a_worker_around_the_block_goes_on_after_it(app: Tidemill) -> None:
    @app.task(name="t")
    async def task(number: int) -> int:
        return number + 1

    async with app.worker():
        of_worker = await session_of(app)
        async with app:
            assert await session_of(app) is not of_worker
        assert await session_of(app) is of_worker
        assert await (await task.aenqueue(1)).aresult(30) == 2


async def test_an_engine_that_cannot_be_opened_fails_the_block_at_its_beginning(
    unused_tcp_port: int,
) -> None:
    app = Tidemill(f"redis://127.0.0.1:{unused_tcp_port}/0")
    for _ in range(2):
        with pytest.raises(EngineUnavailable):
            async with app:
                pytest.fail("the block began")
    assert not app._link.loops._blocks


@pytest.mark.parametrize("engine_mode", ["sqlite-file"], indirect=True)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
async def test_after_a_fork_the_child_has_its_own(app: Tidemill) -> None:
    task = app.task(name="t")(lambda n: n)
    async with app:
        await task.aenqueue(0)
        pid = os.fork()
        if pid == 0:  # the child must not run anything of the test session
            code = 1
            try:
                assert not app._link.loops._blocks
                asyncio._set_running_loop(None)
                task.enqueue(1)
                code = 0
            finally:
                os._exit(code)
        status = await asyncio.to_thread(os.waitpid, pid, 0)
        assert os.waitstatus_to_exitcode(status[1]) == 0
        await task.aenqueue(2)
    assert sorted(msgspec.json.decode(job.body)[0][0] for job in await taken(app)) == [0, 1, 2]


@outside_memory
async def test_many_calls_leave_the_loop_to_others_and_keep_their_order(app: Tidemill) -> None:
    task = app.task(name="t")(lambda n: n)
    made, seen = 0, []

    def calls() -> Iterator[Call[int]]:
        nonlocal made
        for made in range(1, 2_501):
            yield task.call(made)

    async def watch() -> None:
        while True:
            seen.append(made)
            await asyncio.sleep(0)

    async with app:
        watching = asyncio.create_task(watch())
        jobs = await app.aenqueue_many(calls())
        watching.cancel()
    assert max(later - earlier for earlier, later in pairwise(seen)) <= 100
    order = await with_hand(app, all_of)
    assert len(order) == 2_500
    assert [job.id for job in order] == [job.uuid.bytes for job in jobs]


@outside_memory
async def test_if_the_calls_fail_on_the_way_the_chunks_before_stay(app: Tidemill) -> None:
    task = app.task(name="t")(lambda n: n)

    def calls() -> Iterator[Call[int]]:
        for number in range(1_500):
            yield task.call(number)
        raise LookupError("no more")

    async with app:
        with pytest.raises(LookupError) as failed:
            await app.aenqueue_many(calls())
        assert failed.value.__notes__ == ["enqueue_many: the first 1,000 calls were stored"]
    assert len(await taken(app, most=1_000)) == 1_000
