"""Faults inside the processes of members: calls, answers and signals lost, clocks shifted."""

import asyncio

from tests.chaos.faults.scene import Scene, fault, say
from tests.chaos.plan import Step
from tests.chaos.recording.facet import DEATH
from tests.chaos.weather import Forecast, announce

HOUR, MONTH = 3_600, 30 * 86_400
CALLS = ("claim", "settle", "release", "retire", "beat", "reclaim", "acquire", "renew", "fire")
POINTS = [f"{when} {call}" for call in CALLS for when in ("before", "after")]


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
    """Whichever process of a member comes there first, within the time."""
    point = POINTS[step.dice % len(POINTS)]
    path = scene.folder / f"{scene.member(step).name}.weather"
    announce(path, Forecast(die_at=point, token=str(step.dice)))
    try:
        await asyncio.sleep(max(step.length_s, 2 * scene.times.sweep_s))
    finally:
        announce(path, Forecast())


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
