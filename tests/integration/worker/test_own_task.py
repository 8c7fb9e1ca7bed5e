"""Every async job has an asyncio task and a context of its own, whether it ever waits or not."""

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest

from tests.integration.worker.workplace import Workplace

SEEN: ContextVar[str] = ContextVar("seen", default="nothing")


@pytest.fixture(params=["never waits", "waits"])
def pause(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "waits")


async def test_a_job_has_a_task_of_its_own(workplace: Workplace, pause: bool) -> None:
    tasks: list[asyncio.Task[object] | None] = []

    async def look() -> None:
        before = asyncio.current_task()
        if pause:
            await asyncio.sleep(0)
        assert asyncio.current_task() is before
        tasks.append(before)

    workplace.task(look)
    await workplace.start()
    await workplace.enqueue("look", times=3)
    await workplace.settled(3)
    assert None not in tasks
    assert len(set(tasks)) == 3
    assert not asyncio.all_tasks() & set(tasks)
    assert {task.get_name() for task in tasks if task is not None} == {"look"}


async def test_what_a_job_does_to_its_task_stays_there(workplace: Workplace, pause: bool) -> None:
    asked = []

    async def cancel_myself() -> None:
        task = asyncio.current_task()
        assert task is not None
        asked.append(task.cancelling())
        task.cancel()
        if pause:
            with pytest.raises(asyncio.CancelledError):
                await asyncio.sleep(0)

    workplace.task(cancel_myself)
    await workplace.start()
    ids = await workplace.enqueue_many("cancel_myself", times=3)
    await workplace.settled(3)
    assert asked == [0, 0, 0]
    assert [(await workplace.job(job_id)).state.value for job_id in ids] == ["completed"] * 3


async def test_a_timeout_in_a_job_is_that_jobs_alone(workplace: Workplace) -> None:
    async def waits_in_vain() -> str:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            return "too long"
        return "never"

    workplace.task(waits_in_vain)
    await workplace.start()
    job_id = await workplace.enqueue("waits_in_vain")
    await workplace.settled()
    assert (await workplace.job(job_id)).result == b'"too long"'


async def test_a_job_has_a_context_of_its_own(workplace: Workplace, pause: bool) -> None:
    found = []

    async def look(mine: str) -> None:
        found.append(SEEN.get())
        SEEN.set(mine)
        if pause:
            await asyncio.sleep(0)
        found.append(SEEN.get())

    workplace.task(look)
    await workplace.start(slots=1)
    await workplace.enqueue("look", "first")
    await workplace.settled()
    await workplace.enqueue("look", "second")
    await workplace.idle()
    await workplace.settled(2)
    assert found == ["nothing", "first", "nothing", "second"]
    assert SEEN.get() == "nothing"


async def test_a_program_with_its_own_idea_of_tasks_makes_those_of_its_jobs(workplace: Workplace) -> None:
    loop = asyncio.get_running_loop()
    made: list[asyncio.Task[object]] = []

    def factory(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[object]:
        made.append(asyncio.Task(coroutine, loop=loop, **options))
        return made[-1]

    async def task() -> None: ...

    workplace.task(task)
    loop.set_task_factory(factory)  # type: ignore[arg-type]
    try:
        await workplace.start()
        await workplace.enqueue("task")
        await workplace.settled()
    finally:
        loop.set_task_factory(None)
    assert "task" in {task.get_name() for task in made}
