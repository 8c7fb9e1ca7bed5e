"""One run: start the cluster, play a plan, heal, wait until everything has ended, end it, read, judge."""

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from tests.chaos import faults, plants
from tests.chaos.app import EVERY_SECOND, INTERVAL
from tests.chaos.checkers import judge
from tests.chaos.checkers.case import Case
from tests.chaos.checkers.rescue import Rescue, rescues
from tests.chaos.cluster import Cluster
from tests.chaos.history import Recorder, read_history
from tests.chaos.plan import Step, make_plan
from tests.chaos.queues import VALVE
from tests.chaos.reading import Reading, live, read_engine
from tests.chaos.recording.facet import DEATH
from tests.chaos.stores import STORES, make_store
from tests.chaos.times import Times
from tidemill.engine.protocol import Engine
from tidemill.engine.registry import connect
from tidemill.model.errors import EngineUnavailable, UnknownQueue
from tidemill.model.time import Instant
from tidemill.model.view import CONTROLLER_LEASE

MEMBERS = 3
PRODUCERS = 2
SLOTS = 5
RATE = 25.0
"""Operations a second of each producer."""
POLL_S = 0.2
PATIENCE_S = 60.0
"""For an engine that is to answer again after everything was healed."""
PLAY_PATIENCE_S = 180.0
"""For faults that take longer than the plan says: rolling restarts, a server that is slow to come back."""
OPERATIONS = (
    "enqueue", "cancel", "replay", "read", "settle", "release", "retire",
    "declare", "override", "reset", "pause", "resume",
)  # fmt: skip
"""Those that are counted."""
T = TypeVar("T")

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
    points: list[str]
    """Named points at which a process died."""
    elections: int
    ticks: int
    """Jobs that schedules made."""
    rescues: list[Rescue]
    caught_up_s: float | None
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
    keep: bool = False,
    say: Say = lambda _: None,
) -> Verdict:
    """A run on an engine. Without a plan it is made from the seed. If it was red, or with `keep`, its folder
    stays."""
    times = times or Times()
    folder, history_folder = _folders()
    steps = make_plan(seed, kinds_here(engine), seconds) if plan is None else plan
    recorder = Recorder(history_folder, "runner")
    store = make_store(engine, folder, MEMBERS + 1)
    environment = {plants.VARIABLE: plant, **plants.load()[plant].environment} if plant else {}
    shifted = "clock" in store.able and any(step.kind.startswith("clock") for step in steps)
    cluster = Cluster(history_folder, recorder, times, shifted=shifted, environment=environment)
    stays = True
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
        scene = faults.Scene(history_folder, cluster, store, recorder, times, [])
        began = time.monotonic()
        async with asyncio.timeout(seconds + PLAY_PATIENCE_S):
            await _play(scene, steps, seconds, say)
        say("healed; waiting until everything has ended")
        played_s = time.monotonic() - began
        await cluster.end_producers()
        ending = await _settle_down(store.url(), times, recorder)
        keeping.cancel()
        await cluster.end_members()  # else counts move while they are read
        verdict = await _judge(engine, store.url(), history_folder, seed, played_s, times, ending)
        stays = keep or bool(verdict.red)
        if stays:
            verdict.folder = str(folder)
        return verdict
    finally:
        cluster.close()
        await store.close()
        if not stays:
            shutil.rmtree(folder, ignore_errors=True)


def _folders() -> tuple[Path, Path]:
    """Of a run, and of its history."""
    folder = Path(tempfile.mkdtemp(prefix="tidemill-chaos-"))
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


class Ending(NamedTuple):
    """How long it took after the last healing; None: it never came to that."""

    caught_up_s: float | None
    drained_s: float | None


async def _settle_down(url: str, times: Times, recorder: Recorder) -> Ending:
    """Until the schedules have made up for what they missed, then without them until all jobs have ended."""
    began = time.monotonic()
    engine = await _opened(url)
    try:
        await _resume(engine, recorder)
        healed_at = await _answered(engine.now)
        caught_up_s = await _until(lambda: _caught_up(engine, healed_at), began, times.catch_up_s)
        for name in (EVERY_SECOND, INTERVAL):
            await _answered(partial(engine.schedules.pause, name, paused=True))
        drained_s = await _until(lambda: _is_idle(engine), began, times.drain_s)
    finally:
        await engine.close()
    return Ending(caught_up_s, drained_s)


async def _resume(engine: Engine, recorder: Recorder) -> None:
    """The operator has gone, perhaps with the queue paused."""
    op = recorder.invoked("resume")
    with suppress(UnknownQueue):
        await _answered(lambda: engine.queues.resume(VALVE))
    recorder.write("resume", op=op, phase="ok")


async def _caught_up(engine: Engine, healed_at: Instant) -> bool:
    """Whether each schedule has fired after the healing, and so all that was due before."""
    last = {one.name: one.last_at or 0 for one in await engine.schedules.list()}
    return all(last.get(name, 0) >= healed_at for name in (EVERY_SECOND, INTERVAL))


async def _is_idle(engine: Engine) -> bool:
    return not await live(engine)


async def _judge(
    engine_name: str, url: str, folder: Path, seed: int, seconds: float, times: Times, ending: Ending
) -> Verdict:
    engine = await _opened(url)
    try:
        history = read_history(folder)
        known = {job for event in history.of("enqueue") for job in event.jobs}
        reading = await read_engine(engine, known, drained_s=ending.drained_s, caught_up_s=ending.caught_up_s)
    finally:
        await engine.close()
    (folder / "reading.json").write_bytes(msgspec.json.encode(reading))
    case = Case(history, reading, times)
    outcomes: dict[str, int] = {}
    for operation in history.operations(*OPERATIONS):
        outcomes[operation.phase] = outcomes.get(operation.phase, 0) + 1
    outcomes["ok"] = outcomes.get("ok", 0) + sum(bool(one.jobs) for one in history.of("claim"))
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
        points=sorted({event.member for event in history.of("fault") if event.text == DEATH}),
        elections=len({one.number for one in history.of("acquire") if one.text == CONTROLLER_LEASE}),
        ticks=sum(bool(one.schedule) for one in reading.jobs.values()),
        rescues=rescues(case),
        caught_up_s=ending.caught_up_s,
        drained_s=ending.drained_s,
        findings=judge(case),
    )


async def _opened(url: str) -> Engine:
    return await _answered(lambda: connect(url))


async def _answered(call: Callable[[], Awaitable[T]]) -> T:
    """The answer, as soon as there is one: what was broken may take a moment to come back."""
    give_up_at = time.monotonic() + PATIENCE_S
    while True:
        try:
            return await call()
        except EngineUnavailable:
            if time.monotonic() > give_up_at:
                raise
        await asyncio.sleep(POLL_S)


async def _until(fact: Callable[[], Awaitable[bool]], began: float, bound_s: float) -> float | None:
    """How long after `began` it came true; None: not within the bound."""
    while time.monotonic() < began + bound_s:
        with suppress(EngineUnavailable):
            if await fact():
                return time.monotonic() - began
        await asyncio.sleep(POLL_S)
    return None


def reading_of(folder: Path) -> Reading:
    """What an earlier run left, for a second look at it."""
    return msgspec.json.decode((folder / "reading.json").read_bytes(), type=Reading)
