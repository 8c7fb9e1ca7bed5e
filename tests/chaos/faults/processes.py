"""Faults of processes: killed, stopped, restarted."""

import asyncio
import signal
import time

from tests.chaos.cluster import send
from tests.chaos.deploy import deploy
from tests.chaos.faults.scene import Scene, fault, say
from tests.chaos.plan import Step


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
    """SIGTERM to one member after the other; each next one when the former is back, with a newer schema where
    the engine has one."""
    say(scene, step)
    for member in scene.cluster.members:
        if scene.store.has_schema:
            deploy(scene.folder, member.name)
        pid = member.pid
        if member.code is None:
            member.tell(signal.SIGTERM)
        give_up_at = time.monotonic() + 15
        while (member.pid == pid or not member.children()) and time.monotonic() < give_up_at:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
