"""The subjects of the product's comparisons: ours, and the raw loop."""

import asyncio
from typing import Any

from bench.load import chunks, raw_jobs
from bench.plan import BULK, Plan
from bench.raw.sqlite import Loop
from bench.rounds import Subject, Turn, Watch
from penstock.cli.bench import measures
from penstock.cli.bench.crew import Crew
from penstock.engine.protocol import Engine

BATCH = 100
"""Of the raw loop: where it is fastest."""


class Subjects:
    """Makes subjects over one engine and one raw loop."""

    def __init__(self, engine: Engine, plan: Plan) -> None:
        from penstock.cli.bench import app

        self._engine, self._plan, self._app = engine, plan, app
        self._raw = Loop(plan.raw_path("product"), plan.durability)
        self.fill_raw(plan.warm_up)
        self._raw.drain(BATCH)

    def close(self) -> None:
        self._raw.close()

    def through(self, crew: Crew, task: Any, jobs: int | None = None) -> Subject:
        async def turn() -> Turn:
            app = self._app
            return Turn(
                *await measures.throughput(
                    self._engine, app.app, task, crew, app.PAYLOAD, jobs or self._plan.jobs
                )
            )

        return turn

    def singles(self, jobs: int) -> Subject:
        async def turn() -> Turn:
            app = self._app
            return Turn(
                *await asyncio.to_thread(
                    measures.enqueue_one_by_one, app.in_loop, "singles", app.PAYLOAD, jobs
                )
            )

        return turn

    def bulk(self, jobs: int) -> Subject:
        async def turn() -> Turn:
            app = self._app
            return Turn(
                *await asyncio.to_thread(
                    measures.enqueue_in_bulk, app.app, app.in_loop, "bulk", app.PAYLOAD, jobs
                )
            )

        return turn

    def raw_inserts(self, jobs: int, size: int) -> Subject:
        async def turn() -> Turn:
            made = raw_jobs(jobs)
            with Watch() as watch:
                for chunk in chunks(made, size):
                    self._raw.enqueue(chunk)
            return watch.turn(jobs)

        return turn

    def raw_drain(self, jobs: int) -> Subject:
        """Fill, then drain what this turn put in: nothing may be left from other measures."""

        async def turn() -> Turn:
            self._raw.drain(BATCH)
            self.fill_raw(jobs)
            with Watch() as watch:
                done = self._raw.drain(BATCH)
            if done != jobs:
                raise RuntimeError(f"{jobs} jobs were enqueued and {done} settled")
            return watch.turn(jobs)

        return turn

    def fill_raw(self, jobs: int) -> None:
        for chunk in chunks(raw_jobs(jobs), BULK):
            self._raw.enqueue(chunk)
