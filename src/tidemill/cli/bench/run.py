"""One run of `tidemill bench`."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from tempfile import TemporaryDirectory
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress

from tidemill.cli.bench import measures
from tidemill.cli.bench.figures import Figure, bench_shape, figure, table
from tidemill.cli.bench.measures import Latency, MeasuredRate, Quantiles
from tidemill.cli.bench.workers import BenchWorkers, start_workers
from tidemill.cli.bulk.bulk import cleared
from tidemill.cli.demo.stage import keep_litter_in
from tidemill.cli.options.picking import pages
from tidemill.cli.output.text import is_terminal, json_line
from tidemill.engine.events.emitting import EmittingEngine
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.view import JobFilter
from tidemill.task.settings import Settings

MANY_SLOTS = 200
SHARE_OF_SINGLES = 10
"""Single enqueues cost a commit each: a turn has this many times fewer."""
LATENCY_SAMPLES = 300
LATENESS_SAMPLES = 100
WARM_UP = 1_000
PAPER_WIDTH = 120


class Plan(NamedTuple):
    """How much is measured."""

    jobs: int
    processes: int
    turns: int


def run(plan: Plan, url: str | None, as_json: bool) -> None:
    """Measure and print."""
    with _url_in_environment(url):
        name, figures = asyncio.run(_measure(plan))
    if as_json:
        json_line(bench_shape(name, plan.jobs, figures))
        return
    title = f"{name}, medians of {plan.turns} turns of {plan.jobs:,} jobs"
    Console(width=None if is_terminal(sys.stdout) else PAPER_WIDTH).print(table(title, figures))


@contextmanager
def _url_in_environment(url: str | None) -> Iterator[None]:
    """The URL, in the environment: the application that is measured reads it as any other would."""
    with TemporaryDirectory(prefix="tidemill-bench-", ignore_cleanup_errors=True) as folder:
        os.environ["TIDEMILL_URL"] = url or f"sqlite:///{folder}/bench.db"
        keep_litter_in(folder)
        yield


async def _measure(plan: Plan) -> tuple[str, list[Figure]]:
    async with open_engine() as engine:
        with Progress(
            console=Console(stderr=True), transient=True, disable=not is_terminal(sys.stderr)
        ) as bar:
            run = BenchRun(engine, plan, bar)
            figures = [*await run.enqueue(), *await run.work(), *await run.quiet()]
        return engine.name, figures


@asynccontextmanager
async def open_engine() -> AsyncIterator[Engine]:
    """The engine that the settings name, shared with the application that is measured."""
    from tidemill.app.access.in_worker import AppInWorker
    from tidemill.cli.bench.app import app

    settings = Settings.load()
    engine = EmittingEngine(await connect(settings.url, namespace=settings.namespace))
    let_go = AppInWorker(app).adopt(engine)
    try:
        yield engine
    finally:
        await asyncio.to_thread(app.close)
        let_go()
        await engine.close()


class BenchRun:
    """The measures in their order."""

    def __init__(self, engine: Engine, plan: Plan, bar: Progress) -> None:
        from tidemill.cli.bench import app

        self._engine, self._plan, self._bar, self._app = engine, plan, bar, app
        self._queue = f"tidemill-bench-{os.getpid()}"

    async def enqueue(self) -> list[Figure]:
        """What producers get."""
        app, jobs, queue = self._app, self._plan.jobs, f"{self._queue}-in"
        app.app.queue(queue)
        singles: list[MeasuredRate] = []
        bulks: list[MeasuredRate] = []
        for _ in self._turns("enqueue"):
            few = max(1, jobs // SHARE_OF_SINGLES)
            singles.append(
                await asyncio.to_thread(measures.enqueue_one_by_one, app.in_loop, queue, app.PAYLOAD, few)
            )
            bulks.append(
                await asyncio.to_thread(
                    measures.enqueue_in_bulk, app.app, app.in_loop, queue, app.PAYLOAD, jobs
                )
            )
        await clear(self._engine, queue)
        return [*rates("enqueue", "one by one, sync", singles), *rates("enqueue", "in bulk", bulks)]

    async def work(self) -> list[Figure]:
        """What workers get done."""
        figures = []
        processes = self._plan.processes
        for slots in (MANY_SLOTS, None):
            shown = f"{processes} x {slots or Settings.load().slots} slots"
            async with start_workers(
                self._engine, f"{self._queue}-{slots or 'default'}", processes=processes, slots=slots
            ) as workers:
                await self._throughput(workers, WARM_UP)
                turns = [await self._throughput(workers, self._plan.jobs) for _ in self._turns(shown)]
            await clear(self._engine, workers.queue)
            figures += rates("no-op jobs", f"async, {shown}", [turn[0] for turn in turns])
            figures += rates("no-op jobs", f"def, {shown}", [turn[1] for turn in turns])
        return figures

    async def _throughput(self, workers: BenchWorkers, jobs: int) -> tuple[MeasuredRate, MeasuredRate]:
        app = self._app
        return (
            await measures.throughput(self._engine, app.app, app.in_loop, workers, app.PAYLOAD, jobs),
            await measures.throughput(self._engine, app.app, app.in_thread, workers, app.PAYLOAD, jobs),
        )

    async def quiet(self) -> list[Figure]:
        """An idle worker: how soon it has a job, what it costs, how large it is."""
        async with start_workers(self._engine, f"{self._queue}-idle") as workers:
            await measures.latency(self._engine, self._app.stamp, workers, 10)
            waits: list[Latency] = []
            late: list[Quantiles] = []
            shares: list[float] = []
            for _ in self._turns("idle worker"):
                waits.append(await measures.latency(self._engine, self._app.stamp, workers, LATENCY_SAMPLES))
                late.append(
                    await measures.lateness(
                        self._engine, self._app.app, self._app.stamp, workers, LATENESS_SAMPLES
                    )
                )
                shares.append(100 * await measures.idle_share(workers))
            memory = workers.memory_mb()
        await clear(self._engine, workers.queue)
        return [
            *_quantiles("pick-up", "from the call of enqueue", [wait.from_call for wait in waits]),
            *_quantiles("pick-up", "from its return", [wait.from_return for wait in waits]),
            *_quantiles("due times", "late by", late),
            figure("idle", "supervisor and 1 worker", "% of a core", shares),
            figure("memory", "supervisor and 1 worker", "MB", [memory]),
            figure("import", "import tidemill", "ms", [measures.import_ms()]),
        ]

    def _turns(self, what: str) -> Iterator[int]:
        yield from self._bar.track(range(self._plan.turns), description=what)


def rates(measure: str, case: str, turns: list[MeasuredRate]) -> list[Figure]:
    """Jobs a second, and what each job costs."""
    return [
        figure(measure, case, "jobs/s", [turn.jobs_s for turn in turns]),
        figure(measure, f"{case}: CPU", "us/job", [turn.cpu_us for turn in turns]),
    ]


def _quantiles(measure: str, since: str, turns: list[Quantiles]) -> list[Figure]:
    names = ("p50", "p95", "p99")
    return [
        figure(measure, f"{name}, {since}", "ms", [getattr(turn, name) for turn in turns]) for name in names
    ]


async def clear(engine: Engine, queue: str) -> None:
    """Take a measure's jobs away."""
    async for jobs in pages(engine, JobFilter(queue=queue)):
        await cleared(engine, [job.id for job in jobs], "")
