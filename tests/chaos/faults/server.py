"""Faults of the server itself, its connections, its disk and its memory."""

import asyncio
import time
from collections.abc import Callable

from tests.chaos.faults.scene import Scene, fault, say
from tests.chaos.plan import Step

STORM_GAP_S = 0.2


async def _to_server(scene: Scene, step: Step, harm: Callable[[], None], heal: Callable[[], None]) -> None:
    async with scene.store.turn:
        say(scene, step)
        await asyncio.to_thread(harm)
        try:
            await asyncio.sleep(step.length_s)
        finally:
            await asyncio.to_thread(heal)


@fault("kill server", "server")
async def kill_server(scene: Scene, step: Step) -> None:
    await _to_server(scene, step, scene.store.kill, scene.store.start_again)


@fault("stop server", "server")
async def stop_server(scene: Scene, step: Step) -> None:
    await _to_server(scene, step, scene.store.pause, scene.store.resume)


@fault("closed connections", "storm")
async def closed_connections(scene: Scene, step: Step) -> None:
    async with scene.store.turn:
        say(scene, step)
        end = time.monotonic() + step.length_s
        while time.monotonic() < end:
            await asyncio.to_thread(scene.store.close_connections)
            await asyncio.sleep(STORM_GAP_S)


@fault("disk full", "disk")
async def disk_full(scene: Scene, step: Step) -> None:
    def heal() -> None:
        scene.store.disk.free()
        scene.store.start_again()

    await _to_server(scene, step, scene.store.disk.fill, heal)


@fault("no memory", "memory")
async def no_memory(scene: Scene, step: Step) -> None:
    limit = scene.store.limit_memory
    await _to_server(scene, step, lambda: limit(on=True), lambda: limit(on=False))


@fault("long transaction", "transaction")
async def long_transaction(scene: Scene, step: Step) -> None:
    async with scene.store.turn:
        say(scene, step)
        await scene.store.hold_transaction(step.length_s)
