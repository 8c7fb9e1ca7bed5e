"""Faults inside the processes of members: calls, answers and signals lost, clocks shifted."""

import asyncio
import signal
import time

from tests.chaos.cluster import POLL_S, send
from tests.chaos.faults.scene import Scene, fault, say
from tests.chaos.plan import Step
from tests.chaos.recording.facet import DEATH
from tests.chaos.weather import Forecast, announce, struck

HOUR, MONTH = 3_600, 30 * 86_400
CALLS = ("claim", "settle", "release", "retire", "heartbeat", "reclaim", "acquire", "renew", "fire")
POINTS = [f"{when} {call}" for call in CALLS for when in ("before", "after")]
POINTS_A_STEP = 2
STRIDE = 7
"""From one point to the next; it has no divisor in common with their number."""


async def _weather(scene: Scene, step: Step, forecast: Forecast) -> None:
    members = scene.cluster.members if step.dice % 3 == 0 else [scene.member(step)]
    say(scene, step)
    for member in members:
        announce(scene.folder / f"{member.name}.weather", forecast)
    try:
        await asyncio.sleep(step.length_s)
    finally:
        for member in members:
            announce(scene.folder / f"{member.name}.weather", Forecast())


@fault(DEATH)
async def death_at_a_point(scene: Scene, step: Step) -> None:
    """At two points, one after the other; in a long run, all of them come up."""
    for _ in range(POINTS_A_STEP):
        point = POINTS[len(scene.points) * STRIDE % len(POINTS)]
        scene.points.append(point)
        await _death_at(scene, step, point, f"{step.dice}-{len(scene.points)}")


async def _death_at(scene: Scene, step: Step, point: str, token: str) -> None:
    """Of whichever process of any member comes there first, within the time. Some points are only passed when
    something else happens: then that is done to one member too."""
    paths = [scene.folder / f"{member.name}.weather" for member in scene.cluster.members]
    for path in paths:
        announce(path, Forecast(die_at=point, token=token))
    try:
        _provoke(scene, step, point)
        give_up_at = time.monotonic() + max(step.length_s, 2 * scene.times.lease_s)
        while not struck(scene.folder, token) and time.monotonic() < give_up_at:  # noqa: ASYNC110
            await asyncio.sleep(POLL_S)
    finally:
        for path in paths:
            announce(path, Forecast())


def _provoke(scene: Scene, step: Step, point: str) -> None:
    member = scene.member(step)
    children = member.children() if member.code is None else []
    if point.endswith("retire") and children:
        scene.recorder.write("fault", text="kill worker", pids=children[:1], member=member.name)
        send(children[0], signal.SIGKILL)
    elif point.endswith("release"):
        member.tell(signal.SIGTERM)


@fault("calls lost both ways")
async def lost_calls(scene: Scene, step: Step) -> None:
    await _weather(scene, step, Forecast(requests=0.3, replies=0.3))


@fault("out of reach")
async def out_of_reach(scene: Scene, step: Step) -> None:
    await _weather(scene, step, Forecast(requests=1.0))


@fault("answers lost")
async def answers_lost(scene: Scene, step: Step) -> None:
    await _weather(scene, step, Forecast(replies=1.0))


@fault("signals dropped")
async def signals_dropped(scene: Scene, step: Step) -> None:
    await _weather(scene, step, Forecast(drop_signals=1.0))


@fault("signals doubled")
async def signals_doubled(scene: Scene, step: Step) -> None:
    await _weather(scene, step, Forecast(double_signals=1.0))


@fault("clock off by an hour", "clock")
async def an_hour(scene: Scene, step: Step) -> None:
    await _shift(scene, step, HOUR)


@fault("clock off by thirty days", "clock")
async def a_month(scene: Scene, step: Step) -> None:
    await _shift(scene, step, MONTH)


async def _shift(scene: Scene, step: Step, by_s: int) -> None:
    """The wall clock of one member jumps, ahead or back, and later back again."""
    member = scene.member(step)
    say(scene, step, who=member.name)
    member.clock_file.write_text(str(by_s if step.dice % 2 else -by_s))
    try:
        await asyncio.sleep(step.length_s)
    finally:
        member.clock_file.write_text("0")
