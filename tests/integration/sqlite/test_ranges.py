"""Ranges are cut, split and put back as jobs go their ways: every job stands where its state says."""

import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.integration.sqlite.plain_file import file_url, is_sound, plain
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.engines.sqlite.order.ranges import ranges_of
from tidemill.model.errors import UnknownParent
from tidemill.model.ids import JobId, new_id
from tidemill.model.jobs.job import Failure, NewJob
from tidemill.model.jobs.run import Answer, ClaimedJob, Completed, Failed, Release, Settlement
from tidemill.model.queues.queue import Keep, Limit, QueueOptions
from tidemill.model.time import SECOND
from tidemill.testing.contract.fixtures import Claimant, Clock, a_claimant, configure


@pytest.mark.parametrize(
    ("numbers", "ranges"),
    [
        ([], []),
        ([7], [(7, 7)]),
        ([1, 2, 3], [(1, 3)]),
        ([1, 3, 4, 9], [(1, 1), (3, 4), (9, 9)]),
        ([4, 3, 2], [(4, 4), (3, 3), (2, 2)]),
        ([1, 3, 2, 4], [(1, 1), (3, 3), (2, 2), (4, 4)]),
    ],
)
def test_consecutive_numbers_become_ranges(numbers: list[int], ranges: list[tuple[int, int]]) -> None:
    assert list(ranges_of(numbers)) == ranges


def rows_in(path: Path, table: str) -> int:
    with plain(path) as db:
        (count,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(count)


async def test_jobs_that_stay_together_are_one_row(tmp_path: Path) -> None:
    path, clock = tmp_path / "p.db", Clock()
    engine = await connect(file_url(path))
    claimant = await a_claimant(engine, clock)
    await engine.jobs.enqueue([NewJob(id=new_id(), task="t", queue="q") for _ in range(50)], now=clock.now)
    assert rows_in(path, "ready") == 1
    taken = await claimant.take(most=30)
    assert (rows_in(path, "ready"), rows_in(path, "run")) == (1, 1)
    assert await claimant.complete(*taken) == [Answer.APPLIED] * 30
    assert (rows_in(path, "run"), rows_in(path, "ended"), rows_in(path, "more")) == (0, 1, 0)
    await engine.close()


QUEUES = {
    "plain": QueueOptions(keep_completed=Keep(count=20)),
    "fair": QueueOptions(fair_by="key", keep_body=False),
    "tight": QueueOptions(concurrency=6),
    "nothing": QueueOptions(keep_completed=Keep(count=0), keep_dead=Keep(count=0)),
}
OTHERWISE = {"tight": QueueOptions(per_key=Limit(concurrency=2)), "fair": QueueOptions()}


class Walk:
    """Everything that may happen to jobs, at random, in queues of every kind."""

    def __init__(self, engine: Engine, clock: Clock, claimants: list[Claimant], seed: int) -> None:
        self.engine = engine
        self.clock = clock
        self.claimants = claimants
        self.random = random.Random(seed)
        self.known: list[JobId] = []
        self.held: list[ClaimedJob] = []
        self.limited = False

    def some(self, count: int) -> list[ClaimedJob]:
        """Some of the running jobs, which are not held any more."""
        self.random.shuffle(self.held)
        some, self.held = self.held[:count], self.held[count:]
        return some

    def ids(self) -> list[JobId]:
        return self.random.sample(self.known, min(len(self.known), self.random.randint(1, 6)))

    async def enqueue(self) -> None:
        chance = self.random.random
        jobs = [
            NewJob(
                id=new_id(),
                task=self.random.choice("st"),
                queue=self.random.choice(["plain", "plain", "fair", "tight", "nothing"]),
                priority=self.random.choice([5, 5, 5, 3]),
                key=self.random.choice([None, "a", "b"]),
                delay=self.random.choice([0, 0, 0, SECOND]),
                expires=3 * SECOND if chance() < 0.1 else None,
                timeout=SECOND if chance() < 0.2 else None,
                after=tuple(self.ids()[:1]) if self.known and chance() < 0.05 else (),
            )
            for _ in range(self.random.randint(1, 12))
        ]
        if self.random.random() < 0.5:  # a range of its own
            jobs = [NewJob(id=new_id(), task="t", queue="plain") for _ in jobs]
        with suppress(UnknownParent):  # pruned meanwhile
            await self.engine.jobs.enqueue(jobs, now=self.clock.now)
            self.known += [job.id for job in jobs]

    async def claim(self) -> None:
        claimant = self.random.choice(self.claimants)
        queues = self.random.choice(
            [("plain",), ("plain", "fair", "tight", "nothing"), ("tight",), ("nothing",)]
        )
        self.held += await claimant.take(
            *queues, most=self.random.randint(1, 15), suspects=self.random.choice([0, 1])
        )

    async def complete(self) -> None:
        settlements = [
            Settlement(id=job.id, fence=job.fence, outcome=Completed(result=b"1"))
            for job in self.some(self.random.randint(1, 9))
        ]
        await self.engine.jobs.settle(settlements, now=self.clock.now)

    async def fail(self) -> None:
        for job in self.some(2):
            outcome = Failed(failure=Failure(message="no"), retry_in=self.random.choice([None, 0, SECOND]))
            await self.engine.jobs.settle(
                [Settlement(id=job.id, fence=job.fence, outcome=outcome)], now=self.clock.now
            )

    async def release(self) -> None:
        releases = [
            Release(id=job.id, fence=job.fence, delay=self.random.choice([None, None, SECOND]))
            for job in self.some(self.random.randint(1, 4))
        ]
        await self.engine.jobs.release(releases, now=self.clock.now)

    async def command(self) -> None:
        jobs, now = self.engine.jobs, self.clock.now
        kind = self.random.choice(["cancel", "replay", "drop"])
        if kind == "replay":
            await jobs.replay(self.ids(), token=new_id(), now=now)
        else:
            await getattr(jobs, kind)(self.ids(), now=now)

    async def pass_time(self) -> None:
        self.clock.now += self.random.choice([1, SECOND // 2, SECOND])
        await self.engine.jobs.promote(limit=self.random.randint(1, 50), now=self.clock.now)

    async def retire(self) -> None:
        at = self.random.randrange(len(self.claimants))
        await self.engine.jobs.retire(self.claimants[at].id, now=self.clock.now)
        self.claimants[at] = await a_claimant(self.engine, self.clock, name=f"host:{self.random.random()}")

    async def reconfigure(self) -> None:
        """Limits come and go, lanes are cut in other ways."""
        tight = self.random.choice([QUEUES["tight"], OTHERWISE["tight"], QUEUES["plain"]])
        self.limited = tight is not QUEUES["plain"]
        await configure(self.engine, "tight", tight, now=self.clock.now)
        fair = self.random.choice([QUEUES["fair"], OTHERWISE["fair"]])
        await configure(self.engine, "fair", fair, now=self.clock.now)

    async def prune(self) -> None:
        await self.engine.jobs.prune(limit=self.random.randint(1, 20), now=self.clock.now)


@pytest.mark.parametrize("seed", range(12))
async def test_every_job_stands_where_its_state_says(tmp_path: Path, seed: int) -> None:
    path, clock = tmp_path / "p.db", Clock()
    engine = await connect(file_url(path))
    for name, options in QUEUES.items():
        await configure(engine, name, options, now=clock.now)
    claimants = [await a_claimant(engine, clock, name=f"host:{number}") for number in range(3)]
    walk = Walk(engine, clock, claimants, seed)
    walk.limited = True
    steps: list[Callable[[], Awaitable[None]]] = [
        *[walk.enqueue] * 4, *[walk.claim] * 4, *[walk.complete] * 4, walk.fail, walk.release,
        *[walk.command] * 2, walk.pass_time, walk.retire, walk.prune,
        walk.reconfigure,
    ]  # fmt: skip
    with plain(path) as db:
        for _ in range(150):
            await walk.random.choice(steps)()
            is_sound(db)
            running = "SELECT job_now.pk FROM job_now JOIN queue ON queue.pk = job_now.queue WHERE state = 3"
            held = db.execute(f"{running} AND name = 'tight'").fetchall() if walk.limited else []
            assert db.execute("SELECT pk FROM held ORDER BY pk").fetchall() == sorted(held)
    await engine.close()
