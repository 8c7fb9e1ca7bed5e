"""The whole product: what applications get, beside the raw loop on the same store and beside another queue.

Every ratio comes from two subjects that took turns in this run. Our side is measured by the code of
`penstock bench`, with a real `penstock worker` in processes of its own."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from bench.measures import quiet
from bench.peers.environment import PeerMissing
from bench.peers.subjects import huey
from bench.plan import BULK, Plan
from bench.progress import Steps
from bench.report import Figure
from bench.rounds import Comparison, Question, Subject, compare
from bench.subjects import Subjects
from penstock.cli.bench.crew import Crew, hire
from penstock.cli.bench.run import MANY_SLOTS, open_engine
from penstock.engine.protocol import Engine

NAMES = ("api", "work", "peer", "quiet")
WARM_UP = 2_000

Answer = list[Comparison] | list[Figure]


class Case(NamedTuple):
    """Two subjects, and what we hope for."""

    name: str
    ours: Subject
    against: str
    reference: Subject
    wanted: float | None = None


async def run(plan: Plan, only: Collection[str], steps: Steps) -> list[Comparison | Figure]:
    """The measures named, or all."""
    # The application that is measured reads its settings as any other: it must not be imported before this.
    os.environ["PENSTOCK_URL"] = plan.url("product")
    async with open_engine() as engine:
        bench = Product(engine, plan, steps)
        try:
            found: list[Comparison | Figure] = []
            for name, measure in bench.measures().items():
                if not only or name in only:
                    found += await measure()
            return found
        finally:
            bench.close()


class Product:
    """The measures, over one engine and one raw loop."""

    def __init__(self, engine: Engine, plan: Plan, steps: Steps) -> None:
        from penstock.cli.bench import app

        self._engine, self._plan, self._steps, self._app = engine, plan, steps, app
        self._make = Subjects(engine, plan)

    def measures(self) -> dict[str, Callable[[], Awaitable[Answer]]]:
        """By name, in the order of `NAMES`."""
        return dict(zip(NAMES, (self.api, self.work, self.peer, self.quiet), strict=True))

    def close(self) -> None:
        self._make.close()

    async def api(self) -> list[Comparison]:
        """Enqueue through the API, against a raw insert of the same durability."""
        few, many, make = self._plan.jobs_at(1), self._plan.jobs, self._make
        await make.bulk(WARM_UP)()
        cases = [
            Case("sync enqueue, one thread", make.singles(few), "raw", make.raw_inserts(few, 1), 0.6),
            Case("enqueue_many", make.bulk(many), "raw", make.raw_inserts(many, BULK), 0.5),
        ]
        return await self._compare("api", cases)

    async def work(self) -> list[Comparison]:
        """No-op jobs through real workers."""
        loop, thread, make = self._app.in_loop, self._app.in_thread, self._make
        raw = make.raw_drain(self._plan.jobs)
        async with (
            self._hired(1, MANY_SLOTS) as one,
            self._hired(2, MANY_SLOTS) as two,
            self._hired(1, None) as default,
        ):
            quick = make.through(one, loop)
            cases = [
                Case("async, -c 200", quick, "raw", raw, 0.45),
                Case("async, default slots", make.through(default, loop), "raw", raw),
                Case("def, -c 200", make.through(one, thread), "async", quick, 0.7),
                Case("async, 2 processes", make.through(two, loop), "1 process", quick, 1.0),
            ]
            return await self._compare("work", cases)

    async def peer(self) -> list[Comparison]:
        """The same beside Huey's SQLite queue."""
        folder, few, singles = self._plan.folder, self._plan.jobs_at(10), self._plan.jobs_at(1)
        try:
            drains = [huey(folder, "drain", few, durability) for durability in ("full", "off")]
            enqueues = [huey(folder, "enqueue", singles, durability) for durability in ("full", "off")]
        except PeerMissing as missing:
            self._steps.say(f"NOT MEASURED: {missing}")
            return []
        async with self._hired(1, MANY_SLOTS) as crew:
            quick, one_by_one = self._make.through(crew, self._app.in_loop), self._make.singles(singles)
            cases = [
                Case("async, -c 200", quick, "huey", drains[0], 4.0),
                Case("async, -c 200", quick, "huey, no sync", drains[1]),
                Case("sync enqueue, one thread", one_by_one, "huey", enqueues[0]),
                Case("sync enqueue, one thread", one_by_one, "huey, no sync", enqueues[1]),
            ]
            return await self._compare("peer", cases)

    async def quiet(self) -> list[Figure]:
        """An idle worker: no ratios, but bounds that everybody feels."""
        return await quiet.measure(self._engine, self._plan, self._steps)

    async def _compare(self, measure: str, cases: Sequence[Case]) -> list[Comparison]:
        advance = self._steps.begin(measure, 2 * self._plan.rounds * len(cases))
        found = []
        for case in cases:
            question = Question(measure=measure, case=case.name, against=case.against, wanted=case.wanted)
            found.append(await compare(question, case.ours, case.reference, self._plan.rounds, advance))
        return found

    @asynccontextmanager
    async def _hired(self, processes: int, slots: int | None) -> AsyncIterator[Crew]:
        queue = f"crew-{processes}-{slots or 'default'}"
        async with hire(self._engine, queue, processes=processes, slots=slots) as crew:
            for task in (self._app.in_loop, self._app.in_thread):
                await self._make.through(crew, task, WARM_UP)()
            yield crew
