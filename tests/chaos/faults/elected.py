"""Faults of the elected: whoever is the controller now."""

import asyncio
import signal
from contextlib import suppress

from tests.chaos.cluster import Process, send
from tests.chaos.faults.scene import Scene, fault, say
from tests.chaos.plan import Step
from tidemill.engine.registry import connect
from tidemill.model.errors import EngineError


async def elected(scene: Scene) -> Process | None:
    """The member that holds the controller's lease; None: nobody does, or the engine is silent."""
    with suppress(EngineError):
        engine = await connect(scene.store.url())
        try:
            holders = {lease.holder for lease in await engine.leases.list()}
            pids = {one.info.pid for one in await engine.members.list() if one.info.id.hex() in holders}
        finally:
            await engine.close()
        return next((one for one in scene.cluster.members if one.pid in pids and one.code is None), None)
    return None


@fault("kill controller")
async def kill_controller(scene: Scene, step: Step) -> None:
    member = await elected(scene)
    if member is not None:
        family = member.family()
        say(scene, step, pids=family, who=member.name)
        for pid in family:
            send(pid, signal.SIGKILL)


@fault("stop controller")
async def stop_controller(scene: Scene, step: Step) -> None:
    """It may wake up when another has been elected."""
    member = await elected(scene)
    if member is None:
        return
    say(scene, step, pids=[member.pid], who=member.name)
    send(member.pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(step.length_s)
    finally:
        send(member.pid, signal.SIGCONT)
