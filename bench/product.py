"""The whole product: what applications get, beside the raw loop on the same store and beside other queues.

Every ratio comes from two subjects that took turns in this run. Our side is measured by the code of
`tidemill bench`, with a real `tidemill worker` in processes of its own. One module of `products` for each
store says what is measured there."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from bench.plan import Plan
from bench.progress import Steps
from bench.report import Figure
from bench.rounds import Comparison, Question, Subject, compare
from bench.subjects import RAW, Subjects
from tidemill.cli.bench.run import open_engine
from tidemill.cli.bench.workers import BenchWorkers, start_workers
from tidemill.engine.protocol import Engine

WARM_UP = 2_000

Answer = Sequence[Comparison | Figure]
Measure = Callable[["Product"], Awaitable[Answer]]


class Case(NamedTuple):
    """Two subjects, and what we hope for."""

    name: str
    ours: Subject
    against: str
    reference: Subject
    wanted: float | None = None
    cpu_wanted: float | None = None


async def run(
    plan: Plan, measures: dict[str, Measure], only: Collection[str], steps: Steps
) -> list[Comparison | Figure]:
    """The measures named, or all."""
    # The application that is measured reads its settings as any other: it must not be imported before this.
    os.environ["TIDEMILL_URL"] = plan.url("product")
    raw = await plan.store.raw(RAW)
    try:
        async with open_engine() as engine:
            bench = Product(engine, plan, steps, Subjects(engine, plan, raw))
            await bench.make.warm_up()
            found: list[Comparison | Figure] = []
            for name, measure in measures.items():
                if not only or name in only:
                    found += await measure(bench)
            return found
    finally:
        await raw.close()


class Product:
    """What a measure needs: one engine, one raw loop, and workers to start."""

    def __init__(self, engine: Engine, plan: Plan, steps: Steps, make: Subjects) -> None:
        from tidemill.cli.bench import app

        self.engine, self.plan, self.steps, self.make, self.app = engine, plan, steps, make, app

    async def compare(self, measure: str, cases: Sequence[Case]) -> list[Comparison]:
        """Let the subjects of each case take turns."""
        advance = self.steps.begin(measure, 2 * self.plan.rounds * len(cases))
        found = []
        for case in cases:
            question = Question(
                measure=measure,
                case=case.name,
                against=case.against,
                wanted=case.wanted,
                cpu_wanted=case.cpu_wanted,
            )
            found.append(await compare(question, case.ours, case.reference, self.plan.rounds, advance))
        return found

    @asynccontextmanager
    async def workers(self, processes: int, slots: int | None) -> AsyncIterator[BenchWorkers]:
        """A worker on a queue of its own, warmed up."""
        queue = f"workers-{processes}-{slots or 'default'}"
        async with start_workers(self.engine, queue, processes=processes, slots=slots) as workers:
            for task in (self.app.in_loop, self.app.in_thread):
                await self.make.through(workers, task, min(WARM_UP, 2 * self.plan.jobs))()
            yield workers
