"""The subjects of the product's comparisons: ours, and the raw loop."""

import asyncio
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from bench.child import Errand
from bench.load import chunks, raw_jobs
from bench.measures.claim import raw_turn
from bench.measures.enqueue import raw_inserts
from bench.measures.pair import pair_turn
from bench.plan import BULK, Plan
from bench.rounds import Subject, Turn, Watch
from bench.stores import Raw
from tidemill.cli.bench import measures
from tidemill.cli.bench.workers import BenchWorkers
from tidemill.engine.protocol import Engine

RAW = "product_raw"
"""The raw loop's place."""
BATCH = 100
"""Of the raw loop: where it is fastest."""


class Subjects:
    """Makes subjects over one engine and one raw loop."""

    def __init__(self, engine: Engine, plan: Plan, raw: Raw) -> None:
        from tidemill.cli.bench import app

        self._engine, self._plan, self._app, self._raw = engine, plan, app, raw

    def through(self, workers: BenchWorkers, task: Any, jobs: int | None = None) -> Subject:
        """No-op jobs through a worker."""

        async def turn() -> Turn:
            app, count = self._app, jobs or self._plan.jobs
            also = self._plan.store.cpu_s
            rate = await measures.throughput(
                self._engine, app.app, task, workers, app.PAYLOAD, count, also=also
            )
            return Turn(*rate)

        return turn

    def singles(self, jobs: int) -> Subject:
        app = self._app
        return self._in_thread(jobs, measures.enqueue_one_by_one, app.in_loop, "singles", app.PAYLOAD, jobs)

    def callers(self, jobs: int, callers: int, *, block: bool = False) -> Subject:
        """`aenqueue`, by so many at once, each of which goes on when its job is stored. `block`: within
        `async with app`, and not through the app's thread."""

        async def turn() -> Turn:
            app = self._app
            call, left = app.in_loop.using(queue="singles"), iter(range(jobs))

            async def caller() -> None:
                for _ in left:
                    await call.aenqueue(app.PAYLOAD)

            async with app.app if block else nullcontext():
                with Watch(self._plan.store.cpu_s) as watch:
                    await asyncio.gather(*(caller() for _ in range(callers)))
            return watch.turn(jobs)

        return turn

    def bulk(self, jobs: int) -> Subject:
        app = self._app
        return self._in_thread(
            jobs, measures.enqueue_in_bulk, app.app, app.in_loop, "bulk", app.PAYLOAD, jobs
        )

    def _in_thread(
        self, jobs: int, enqueue: Callable[..., measures.MeasuredRate], *options: object
    ) -> Subject:
        """A sync producer, with what it makes the store do."""

        async def turn() -> Turn:
            cpu_s = self._plan.store.cpu_s()
            rate = await asyncio.to_thread(enqueue, *options)
            cpu_s = self._plan.store.cpu_s() - cpu_s
            return Turn(rate.jobs_s, rate.cpu_us + 1e6 * cpu_s / jobs)

        return turn

    def raw_inserts(self, jobs: int, size: int) -> Subject:
        return raw_inserts(self._plan, self._raw, size, jobs)

    def raw_drain(self, jobs: int) -> Subject:
        """Fill, then drain what this turn put in: nothing may be left from other measures."""
        fill_and_drain = raw_turn(self._plan, self._raw, self._raw.drain, BATCH, jobs)

        async def turn() -> Turn:
            await self._raw.drain(BATCH)
            return await fill_and_drain()

        return turn

    def raw_pair(self, jobs: int) -> Subject:
        """The same by two processes."""
        place = self._plan.store.raw_place(RAW)
        errand = Errand(engine=False, place=place, durability=self._plan.durability, batch=BATCH)

        async def refill(count: int) -> None:
            await self._raw.drain(BATCH)
            for chunk in chunks(raw_jobs(count), BULK):
                await self._raw.enqueue(chunk)

        return pair_turn(self._plan, errand, refill, jobs, [])

    async def warm_up(self) -> None:
        for chunk in chunks(raw_jobs(self._plan.warm_up), BULK):
            await self._raw.enqueue(chunk)
        await self._raw.drain(BATCH)
