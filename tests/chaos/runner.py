"""One run: start the cluster, play a plan, heal, wait until everything has ended, read, judge."""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from penstock.engine.protocol import Engine
from penstock.engine.registry import connect
from penstock.model.errors import EngineUnavailable
from tests.chaos import faults, plants
from tests.chaos.checkers import judge
from tests.chaos.checkers.case import Case
from tests.chaos.checkers.rescue import Rescue, rescues
from tests.chaos.cluster import Cluster
from tests.chaos.history import Recorder, read_history
from tests.chaos.plan import Step, make_plan
from tests.chaos.reading import Reading, live, read_engine
from tests.chaos.stores import STORES, make_store
from tests.chaos.times import Times

MEMBERS = 3
PRODUCERS = 2
SLOTS = 5
RATE = 25.0
"""Operations a second of each producer."""
LOOK_S = 0.2

Say = Callable[[str], None]


class Verdict(msgspec.Struct, kw_only=True):
    """What came of a run."""

    engine: str
    seed: int
    seconds: float
    operations: dict[str, int]
    """By their outcome: ok, failed, unknown."""
    jobs: int
    runs: int
    faults: dict[str, int]
    rescues: list[Rescue]
    drained_s: float | None
    findings: dict[str, list[str]]
    folder: str = ""
    """Where history and logs were left, if something was wrong."""

    @property
    def red(self) -> list[str]:
        return [name for name, found in self.findings.items() if found]


async def run(
    engine: str,
    *,
    seed: int,
    seconds: float,
    plan: Sequence[Step] | None = None,
    plant: str = "",
    times: Times | None = None,
    rate: float = RATE,
    say: Say = lambda _: None,
) -> Verdict:
    """A run on an engine. Without a plan it is made from the seed."""
    times = times or Times()
    folder, history_folder = _folders()
    steps = make_plan(seed, kinds_here(engine), seconds) if plan is None else plan
    recorder = Recorder(history_folder, "runner")
    store = make_store(engine, folder, MEMBERS + 1)
    environment = {plants.VARIABLE: plant, **plants.load()[plant].environment} if plant else {}
    shifted = "clock" in store.able and any(step.kind.startswith("clock") for step in steps)
    cluster = Cluster(history_folder, recorder, times, shifted=shifted, environment=environment)
    red = True
    try:
        await store.start()
        await plants.prepare(store.url(), plant)
        for link in range(MEMBERS):
            cluster.add_member(store.url(link), SLOTS)
        for _ in range(PRODUCERS):
            cluster.add_producer(store.url(MEMBERS), seed, rate)
        cluster.start()
        await cluster.ready()
        keeping = asyncio.create_task(cluster.keep())
        scene = faults.Scene(history_folder, cluster, store, recorder, times)
        began = time.monotonic()
        await _play(scene, steps, seconds, say)
        say("healed; waiting until everything has ended")
        await cluster.end_producers()
        verdict = await _judge(engine, store.url(), history_folder, seed, time.monotonic() - began, times)
        keeping.cancel()
        red = bool(verdict.red)
        if red:
            verdict.folder = str(folder)
        return verdict
    finally:
        cluster.close()
        await store.close()
        if not red:
            shutil.rmtree(folder, ignore_errors=True)


def _folders() -> tuple[Path, Path]:
    """Of a run, and of its history."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-chaos-"))
    folder.chmod(0o755)  # a server may run as somebody else
    (folder / "history").mkdir()
    return folder, folder / "history"


def kinds_here(engine: str) -> list[str]:
    """The faults that an engine can have on this machine."""
    return faults.kinds_for(STORES[engine].able, root=os.geteuid() == 0)


async def _play(scene: faults.Scene, steps: Sequence[Step], seconds: float, say: Say) -> None:
    began = time.monotonic()

    async def one(step: Step) -> None:
        await asyncio.sleep(max(0.0, began + step.at_s - time.monotonic()))
        say(step.kind)
        await faults.play(scene, step)

    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(seconds))
        for step in steps:
            group.create_task(one(step))


async def _judge(
    engine_name: str, url: str, folder: Path, seed: int, seconds: float, times: Times
) -> Verdict:
    engine = await _opened(url)
    try:
        drained_s = await _drained(engine, times)
        history = read_history(folder)
        known = {job for event in history.of("enqueue") for job in event.jobs}
        reading = await read_engine(engine, known, drained_s)
    finally:
        await engine.close()
    (folder / "reading.json").write_bytes(msgspec.json.encode(reading))
    case = Case(history, reading, times)
    outcomes: dict[str, int] = {}
    for operation in history.operations("enqueue", "cancel", "replay", "look", "settle", "release", "retire"):
        outcomes[operation.phase] = outcomes.get(operation.phase, 0) + 1
    outcomes["ok"] = outcomes.get("ok", 0) + len(history.of("claim"))
    played: dict[str, int] = {}
    for event in history.of("fault"):
        played[event.text] = played.get(event.text, 0) + 1
    return Verdict(
        engine=engine_name,
        seed=seed,
        seconds=seconds,
        operations=outcomes,
        jobs=len(reading.jobs),
        runs=len(history.of("start")),
        faults=played,
        rescues=rescues(case),
        drained_s=drained_s,
        findings=judge(case),
    )


async def _opened(url: str) -> Engine:
    while True:
        with suppress(EngineUnavailable):
            return await connect(url)
        await asyncio.sleep(LOOK_S)


async def _drained(engine: Engine, times: Times) -> float | None:
    """How long it took until nothing was live any more."""
    began = time.monotonic()
    while time.monotonic() < began + times.drain_s:
        with suppress(EngineUnavailable):
            if not await live(engine):
                return time.monotonic() - began
        await asyncio.sleep(LOOK_S)
    return None


def reading_of(folder: Path) -> Reading:
    """What an earlier run left, for a second look at it."""
    return msgspec.json.decode((folder / "reading.json").read_bytes(), type=Reading)
