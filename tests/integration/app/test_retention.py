"""What stays of finished jobs, as the app says it: by age and count, per state and queue, or nothing."""

import asyncio
import time

import pytest

from tidemill import BadInput, Job, JobFailed, JobState, Keep, Retry, Tidemill, UnknownJob
from tidemill.engine.registry import connect
from tidemill.task.settings import Settings

PATIENCE_S = 30.0


async def kept(jobs: list[Job[None]]) -> list[bool]:
    """Which of them are still there."""
    found = []
    for job in jobs:
        try:
            await job.ainfo()
        except UnknownJob:
            found.append(False)
        else:
            found.append(True)
    return found


async def until_kept(jobs: list[Job[None]], expected: list[bool]) -> None:
    """The controller's next round of retention has been."""
    give_up_at = time.monotonic() + PATIENCE_S
    while (found := await kept(jobs)) != expected:
        assert time.monotonic() < give_up_at, found
        await asyncio.sleep(0.02)


@pytest.mark.every_engine
@pytest.mark.row("C6")
async def test_the_controller_deletes_what_is_not_kept(url: str) -> None:
    app = Tidemill(settings=Settings.load(url=url, keep_completed="2", keep_dead="1"))
    app.queue("all", keep=Keep())
    app.queue("newest", keep_completed=1)
    app.queue("young", keep=Keep(age=0.001), keep_dead=Keep())
    app.queue("nothing", keep=0)

    @app.task(retry=Retry(attempts=1))
    async def works(well: bool) -> None:
        if not well:
            raise ValueError("not well")

    engine = await connect(app.url)  # what lives in memory outlives its worker
    queues = ("all", "newest", "young", "nothing", "default")
    jobs: dict[str, list[Job[None]]] = {queue: [] for queue in queues}
    dead: dict[str, list[Job[None]]] = {queue: [] for queue in queues}
    async with app.worker(slots=1, controller=False):
        for queue in queues:
            for _ in range(3):
                jobs[queue].append(await works.using(queue=queue).aenqueue(True))
                dead[queue].append(await works.using(queue=queue).aenqueue(False))
                with pytest.raises(JobFailed):
                    await dead[queue][-1].aresult(PATIENCE_S)
        # nobody prunes without a controller; but `keep=0` needs none
        assert await kept(jobs["nothing"]) == [False] * 3
        assert await kept(jobs["young"] + dead["default"]) == [True] * 6
    async with app.worker():
        await until_kept(jobs["default"], [False, True, True])
        await until_kept(dead["default"], [False, False, True])
        await until_kept(jobs["newest"], [False, False, True])
        await until_kept(jobs["young"], [False] * 3)
        assert await kept(jobs["all"]) == [True] * 3
        assert await kept(dead["young"]) == [True] * 3, "dead letters have a rule of their own"
    assert dead["young"][0].state is JobState.DEAD
    await engine.close()
    await app.aclose()


def test_what_is_kept_is_a_number_or_a_rule() -> None:
    app = Tidemill("sqlite://")
    app.queue("mail", keep=5, keep_cancelled=Keep())
    options = app.registry.options_of("mail")
    assert (options.keep_completed, options.keep_cancelled, options.keep_dead) == (
        Keep(count=5),
        Keep(),
        Keep(),
    )
    with pytest.raises(BadInput, match="keep= takes a number of jobs or a Keep"):
        app.queue("bad", keep="1d")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="retention count"):
        app.queue("bad", keep=-1)
