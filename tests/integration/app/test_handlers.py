"""A job dies, and its handler runs: the whole way."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from tidemill import DeadJob, JobFailed, JobState, Retry, Tidemill, current_job
from tidemill.model.ids import handler_id

ONCE = Retry(attempts=1)
NO_WAIT = Retry(attempts=2, base=0, jitter="none")


@pytest.mark.every_engine
@pytest.mark.row("D7")
async def test_the_handler_of_a_task_decides_what_its_death_means(app: Tidemill) -> None:
    told: asyncio.Queue[DeadJob] = asyncio.Queue()

    @app.task(retry=NO_WAIT)
    async def charge(card: str, cents: int = 0) -> None:
        raise OSError(f"{card} was refused")

    @app.on_dead(charge)
    @app.task(queue="refunds", retry=NO_WAIT)
    async def refund(dead: DeadJob) -> None:
        told.put_nowait(dead)
        if current_job().attempt == 1:
            raise OSError("the bank is busy")  # a handler is tried again like any task

    async with app.worker():
        job = await charge.aenqueue("4711", cents=5)
        with pytest.raises(JobFailed):
            await job.aresult(timeout=30)
        first, again = [await asyncio.wait_for(told.get(), 30) for _ in range(2)]
        assert first == again
        assert (first.id, first.task, first.queue, first.attempts) == (job.id, charge.name, "default", 2)
        assert (first.args, first.kwargs) == (["4711"], {"cents": 5})
        assert (first.failure.error, first.failure.message) == ("OSError", "4711 was refused")
        assert "charge" in first.failure.traceback
        assert (await app.job(first.id).ainfo()).state is JobState.DEAD
    assert told.empty()
    await app.aclose()


@pytest.mark.row("D7")
async def test_one_handler_for_all_and_what_else_kills(app: Tidemill) -> None:
    told: asyncio.Queue[DeadJob] = asyncio.Queue()

    @app.on_dead()
    @app.task(retry=ONCE)
    def bury(dead: DeadJob) -> None:
        loop.call_soon_threadsafe(told.put_nowait, dead)
        raise ValueError("and its own death is handled by nobody")

    @app.task(retry=ONCE, timeout=0.05)
    async def too_slow() -> None:
        await asyncio.sleep(60)

    @app.task(retry=ONCE)
    async def reads(number: int) -> int:
        return number

    loop = asyncio.get_running_loop()
    await too_slow.using(expires=timedelta(milliseconds=1), queue="nobody-serves").aenqueue()
    async with app.worker():
        await too_slow.aenqueue()
        app_without_code = Tidemill(app.url) if app.url != "sqlite://" else app
        await app_without_code.aenqueue(reads.name, ["not a number"])
        found = [await asyncio.wait_for(told.get(), 30) for _ in range(3)]
        assert sorted(dead.failure.kind for dead in found) == ["expired", "payload", "timeout"]
        (strange,) = [dead for dead in found if dead.failure.kind == "payload"]
        assert strange.args == ["not a number"]
        handler = app.job(UUID(bytes=handler_id(UUID(strange.id).bytes, 0)))
        with pytest.raises(JobFailed, match="handled by nobody"):
            await handler.aresult(timeout=30)
        assert (await handler.ainfo()).on_dead is None
        await app_without_code.aclose()
    await app.aclose()


@pytest.mark.row("D7")
async def test_a_call_may_choose_its_own(app: Tidemill) -> None:
    told: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    @app.task(retry=ONCE)
    async def charge(card: str) -> None:
        raise OSError(card)

    @app.on_dead(charge)
    @app.task
    async def usual(dead: DeadJob) -> None:
        told.put_nowait(("usual", dead.args[0]))

    @app.task
    async def special(dead: DeadJob) -> None:
        told.put_nowait(("special", dead.args[0]))

    async with app.worker():
        await charge.aenqueue("a")
        await charge.using(on_dead=special).aenqueue("b")
        assert {await asyncio.wait_for(told.get(), 30) for _ in range(2)} == {
            ("usual", "a"),
            ("special", "b"),
        }
    await app.aclose()
