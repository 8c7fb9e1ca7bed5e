"""`app.tasks`: what operators do with tasks at run time, beside a running worker of another program."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.engines import SHARED
from tidemill import BadInput, JobState, Tidemill, UnknownTask
from tidemill.engine.registry import connect


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


@pytest.mark.every_engine
async def test_a_paused_task_waits_while_others_run_and_goes_on_in_its_order(
    app: Tidemill, other: Tidemill
) -> None:
    ran: list[int] = []

    @app.task(name="mail")
    async def mail(number: int) -> None:
        ran.append(number)

    @app.task(name="print")
    async def print_(number: int) -> int:
        return number

    async with app.worker(slots=1):
        assert await (await print_.aenqueue(0)).aresult(timeout=30) == 0
        await other.tasks.apause("mail", by="ann", why="their server is down")
        mails = [await mail.aenqueue(number) for number in range(3)]
        assert await (await print_.aenqueue(1)).aresult(timeout=30) == 1
        assert {(await job.ainfo()).state for job in mails} == {JobState.READY}
        (shown, _) = await other.tasks.alist()
        assert (shown.name, shown.paused_by, shown.paused_why) == ("mail", "ann", "their server is down")
        assert shown.paused_at is not None
        await other.tasks.aresume("mail")
        for job in mails:
            await job.aresult(timeout=30)
    assert ran == [0, 1, 2]
    assert [each.paused_at for each in await other.tasks.alist()] == [None, None]


def publish(app: Tidemill) -> None:
    """As a worker does when it starts."""

    async def go() -> None:
        engine = await connect(app.url)
        entries = [app.registry.entry_of(each) for each in app.registry.definitions()]
        await engine.tasks.publish(entries)
        await engine.close()

    asyncio.run(go())


def test_the_sync_forms_and_a_task_in_the_place_of_its_name(app: Tidemill, other: Tidemill) -> None:
    @app.task(name="mail", queue="post", priority=2)
    def mail() -> None: ...

    publish(app)
    app.tasks.pause(mail, why="too hot")
    (shown,) = other.tasks.list()
    assert (shown.name, shown.queue, shown.priority, shown.paused_why) == ("mail", "post", 2, "too hot")
    assert shown.paused_by.startswith("app:")
    app.tasks.resume(mail)
    assert other.tasks.list()[0].paused_at is None


def test_what_is_no_task_is_refused_with_the_nearest_name(app: Tidemill) -> None:
    @app.task(name="mail")
    def mail() -> None: ...

    publish(app)
    with pytest.raises(UnknownTask, match="did you mean 'mail'"):
        app.tasks.pause("mial")
    with pytest.raises(UnknownTask, match="did you mean 'mail'"):
        app.tasks.resume("mial")
    with pytest.raises(BadInput, match="not by int"):
        app.tasks.pause(5)  # type: ignore[arg-type]
