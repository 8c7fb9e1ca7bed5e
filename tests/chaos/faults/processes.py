"""Faults of processes: killed, stopped, restarted."""

import asyncio
import signal
import time

from tests.chaos.cluster import Process, send
from tests.chaos.deploy import deploy
from tests.chaos.faults.scene import Scene, fault, say
from tests.chaos.plan import Step

BACK_S = 15.0
"""How long a restart may take before the plan goes on."""


@fault("kill worker")
async def kill_worker(scene: Scene, step: Step) -> None:
    member = scene.member(step)
    children = member.children() if member.code is None else []
    if children:
        say(scene, step, pids=children[:1], who=member.name)
        send(children[0], signal.SIGKILL)


@fault("kill supervisor")
async def kill_supervisor(scene: Scene, step: Step) -> None:
    """Its worker processes go with it."""
    member = scene.member(step)
    if member.code is None:
        say(scene, step, pids=member.family(), who=member.name)
        send(member.pid, signal.SIGKILL)


@fault("kill member")
async def kill_member(scene: Scene, step: Step) -> None:
    """All of it at once, as a host that loses power."""
    member = scene.member(step)
    if member.code is None:
        family = member.family()
        say(scene, step, pids=family, who=member.name)
        for pid in family:
            send(pid, signal.SIGKILL)


@fault("kill producer")
async def kill_producer(scene: Scene, step: Step) -> None:
    producers = scene.cluster.producers
    one = producers[step.target % len(producers)]
    if one.code is None:
        say(scene, step, pids=[one.pid], who=one.name)
        send(one.pid, signal.SIGKILL)


async def _stop(scene: Scene, step: Step, pids: list[int]) -> None:
    say(scene, step, pids=pids, who=scene.member(step).name)
    for pid in pids:
        send(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(step.length_s)
    finally:
        for pid in pids:
            send(pid, signal.SIGCONT)


@fault("stop worker")
async def stop_worker(scene: Scene, step: Step) -> None:
    await _stop(scene, step, scene.member(step).children()[:1])


@fault("stop supervisor")
async def stop_supervisor(scene: Scene, step: Step) -> None:
    await _stop(scene, step, [scene.member(step).pid])


@fault("stop member")
async def stop_member(scene: Scene, step: Step) -> None:
    """As a virtual machine that is paused."""
    await _stop(scene, step, scene.member(step).family())


@fault("rolling restart")
async def rolling_restart(scene: Scene, step: Step) -> None:
    """SIGTERM to one member after the other; each next one when the former is back, with a newer release."""
    say(scene, step)
    for member in scene.cluster.members:
        deploy(scene.folder, member.name)
        await _restart(member)


@fault("another release")
async def another_release(scene: Scene, step: Step) -> None:
    """One member is restarted with a newer release or an older one, while the others have theirs."""
    member = scene.member(step)
    say(scene, step, who=member.name)
    deploy(scene.folder, member.name, 1 if step.dice % 2 else -1)
    await _restart(member)


async def _restart(member: Process) -> None:
    """SIGTERM, and wait until it is back."""
    pid = member.pid
    if member.code is None:
        member.tell(signal.SIGTERM)
    give_up_at = time.monotonic() + BACK_S
    while (member.pid == pid or not member.children()) and time.monotonic() < give_up_at:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
