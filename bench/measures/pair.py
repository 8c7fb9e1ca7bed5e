"""Two processes on one store: what they do together, and whether they share fairly."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec

from bench.child import Errand, Report
from bench.load import chunks, fill, new_jobs, raw_jobs
from bench.plan import BULK, Plan
from bench.progress import Steps
from bench.raw.sqlite import Loop
from bench.rounds import Comparison, Question, Subject, Turn, compare
from penstock.engine.registry import connect

BATCHES = (10, 100)
BUSIER_WANTED = 0.6
PATIENCE_S = 120.0


async def measure(plan: Plan, steps: Steps) -> list[Comparison]:
    """Two engines in two processes against two raw loops."""
    advance = steps.begin("pair", 2 * plan.rounds * len(BATCHES))
    engine = await connect(plan.url("pair"))
    raw = Loop(plan.raw_path("pair"), plan.durability)

    def errand_of(engine: bool, batch: int) -> Errand:
        place = plan.url("pair") if engine else str(plan.raw_path("pair"))
        return Errand(engine=engine, place=place, durability=plan.durability, batch=batch)

    async def fill_engine(count: int) -> None:
        await fill(engine, new_jobs(count))

    async def fill_raw(count: int) -> None:
        for chunk in chunks(raw_jobs(count), BULK):
            raw.enqueue(chunk)

    try:
        comparisons = []
        for batch in BATCHES:
            shares: list[float] = []
            ours = _turn(errand_of(True, batch), fill_engine, 2 * plan.jobs_at(batch), shares)
            theirs = _turn(errand_of(False, batch), fill_raw, 2 * plan.jobs_at(batch), [])
            question = Question(
                measure="pair",
                case=f"two processes, batch {batch}",
                against="raw",
                busier_wanted=BUSIER_WANTED,
            )
            found = await compare(question, ours, theirs, plan.rounds, advance)
            found.busier = shares
            comparisons.append(found)
        return comparisons
    finally:
        raw.close()
        await engine.close()


def _turn(
    errand: Errand, refill: Callable[[int], Awaitable[None]], jobs: int, shares: list[float]
) -> Subject:
    """Fill, then let two children drain it together."""

    async def turn() -> Turn:
        await refill(jobs)
        reports = await _race(errand)
        done = sum(report.jobs for report in reports)
        if done != jobs:
            raise RuntimeError(f"{jobs} jobs were enqueued and {done} settled")
        shares.append(max(report.jobs for report in reports) / jobs)
        took = max(report.ended for report in reports) - min(report.began for report in reports)
        return Turn(jobs / took, 1e6 * sum(report.cpu_s for report in reports) / jobs)

    return turn


async def _race(errand: Errand) -> list[Report]:
    """Start two children, let them go together, and hear what they did."""
    text = msgspec.json.encode(errand).decode()
    command = (sys.executable, "-m", "bench.child", text)
    children: list[Process] = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            for _ in range(2):
                child = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE)
                children.append(child)
            for child in children:
                await _line(child)
            for child in children:
                assert child.stdin is not None
                child.stdin.write(b"go\n")
            reports = [msgspec.json.decode(await _line(child), type=Report) for child in children]
            for child in children:
                await child.wait()
            return reports
    finally:
        for child in children:
            with suppress(ProcessLookupError):
                child.kill()


async def _line(child: Process) -> bytes:
    assert child.stdout is not None
    line = await child.stdout.readline()
    if not line:
        raise RuntimeError("a child of the benchmark failed; its error stands above")
    return line
