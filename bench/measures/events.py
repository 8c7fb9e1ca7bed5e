"""What events cost: the throughput of workers while somebody reads every event, and while nobody does.

The reader is a process of its own, on the same processors. `nobody` compares an engine that would emit with
the bare engine, claim and settlement alone: the least that a change can cost, and so the worst ratio.
"""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from bench.claimer import Claimer
from bench.listener import Heard
from bench.measures.claim import engine_turn
from bench.plan import Plan
from bench.product import Product
from bench.report import Figure
from bench.rounds import Comparison, Question, Subject, Turn, compare
from tidemill.cli.bench.run import MANY_SLOTS
from tidemill.engine.events.emitter import ANNOUNCED
from tidemill.engine.events.emitting import EmittingEngine
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect

WANTED_HEARD, WANTED_UNHEARD = 0.85, 0.97
BATCH = 100
EVENTS_A_JOB = 3
"""ready, running, completed."""


async def measure(bench: Product, processes: int) -> list[Comparison | Figure]:
    """Both."""
    return [*await _heard(bench, processes), *await _unheard(bench)]


async def _heard(bench: Product, processes: int) -> list[Comparison | Figure]:
    rounds = bench.plan.rounds
    advance = bench.steps.begin("events", 2 * rounds)
    shown = f"async, {processes} process{'es' * (processes > 1)}, -c {MANY_SLOTS}"
    question = Question(
        measure="events", case=f"{shown}, all are read", against="nobody listens", wanted=WANTED_HEARD
    )
    missed: list[float] = []
    async with bench.workers(processes, MANY_SLOTS) as workers:
        quiet = bench.make.through(workers, bench.app.in_loop)

        async def listened() -> Turn:
            async with _listener(bench.plan.url("product")) as child:
                turn = await quiet()
                missed.append(100 * (1 - (await _heard_by(child)).events / (EVENTS_A_JOB * bench.plan.jobs)))
            await _until_forgotten(bench)
            return turn

        found = await compare(question, listened, quiet, rounds, advance)
    return [found, Figure("events that did not arrive", "%", missed)]


@asynccontextmanager
async def _listener(url: str) -> AsyncIterator[Process]:
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.listener", url, stdin=PIPE, stdout=PIPE
    )
    try:
        assert child.stdout is not None
        if await child.stdout.readline() != b"listening\n":
            raise RuntimeError("the listener failed; its error stands above")
        yield child
        child.stdin.close()  # type: ignore[union-attr]
        await child.wait()
    finally:
        if child.returncode is None:
            child.kill()


async def _heard_by(child: Process) -> Heard:
    """What it has heard, once nothing more comes."""
    assert child.stdin is not None
    assert child.stdout is not None
    last = None
    while True:
        child.stdin.write(b"?\n")
        heard = msgspec.json.decode(await child.stdout.readline(), type=Heard)
        if heard == last:
            return heard
        last = heard
        await asyncio.sleep(0.5)


async def _until_forgotten(bench: Product) -> None:
    """Until no process believes that somebody listens: the next turn is one without."""
    while any(  # noqa: ASYNC110  # nobody signals it
        lease.name.startswith(ANNOUNCED) for lease in await bench.engine.leases.list()
    ):
        await asyncio.sleep(0.1)
    await asyncio.sleep(2.5)


async def _drains(plan: Plan, engine: Engine) -> Subject:
    claimer = await Claimer.join(engine)
    return engine_turn(plan, engine, claimer.drain, BATCH, plan.jobs)


async def _unheard(bench: Product) -> list[Comparison]:
    plan = bench.plan
    advance = bench.steps.begin("events, unheard", 2 * plan.rounds)
    question = Question(
        measure="events",
        case=f"engine, batch {BATCH}, nobody listens",
        against="bare engine",
        wanted=WANTED_UNHEARD,
    )
    bare, emitting = await connect(plan.url("unheard")), EmittingEngine(await connect(plan.url("unheard")))
    try:
        ours, reference = [await _drains(plan, engine) for engine in (emitting, bare)]
        for subject in (ours, reference):
            await subject()
        return [await compare(question, ours, reference, plan.rounds, advance)]
    finally:
        await emitting.close()
        await bare.close()
