"""Faults of the links to the server: those of one member, or of all at once."""

import asyncio
import random

from tests.chaos.faults.scene import Scene, fault, say
from tests.chaos.plan import Step

SLOW_S = (0.02, 0.15, 0.4)


def _links(scene: Scene, step: Step) -> list[int]:
    links = len(scene.store.proxies)
    return list(range(links)) if step.dice % 3 == 0 else [step.target % links]


@fault("lost replies on the link", "links")
async def black_hole_back(scene: Scene, step: Step) -> None:
    await _mute(scene, step, "replies")


@fault("lost requests on the link", "links")
async def black_hole_out(scene: Scene, step: Step) -> None:
    await _mute(scene, step, "requests")


async def _mute(scene: Scene, step: Step, direction: str) -> None:
    """A black hole in one direction. What was swallowed is gone for good: the links of that time are reset
    in the end, as TCP would."""
    proxies = [scene.store.proxies[link] for link in _links(scene, step)]
    say(scene, step)
    for proxy in proxies:
        proxy.mute(direction)
    try:
        await asyncio.sleep(step.length_s)
    finally:
        for proxy in proxies:
            proxy.mute(direction, on=False)
            proxy.cut_all()


@fault("half-open links", "links")
async def half_open(scene: Scene, step: Step) -> None:
    """Nobody resets these: whoever waits for an answer has to lose patience by itself."""
    say(scene, step)
    for link in _links(scene, step):
        scene.store.proxies[link].forget_all()


@fault("reply lost after commit", "links")
async def reply_lost(scene: Scene, step: Step) -> None:
    say(scene, step)
    for link in _links(scene, step):
        for purpose in ("claims", "settles", "enqueues", "commands", "heartbeats"):
            for _ in range(1 + step.dice % 3):
                scene.store.proxies[link].cut_next_reply(purpose)


@fault("slow links", "links")
async def slow_links(scene: Scene, step: Step) -> None:
    proxies = [scene.store.proxies[link] for link in _links(scene, step)]
    say(scene, step)
    for proxy in proxies:
        proxy.slow(SLOW_S[step.dice % len(SLOW_S)])
    try:
        await asyncio.sleep(step.length_s)
    finally:
        for proxy in proxies:
            proxy.slow(0)


@fault("flapping around the lease", "links")
async def flapping(scene: Scene, step: Step) -> None:
    """Out of reach for just less and just more than a lease, by turns."""
    dice = random.Random(step.dice)
    proxies = [scene.store.proxies[link] for link in _links(scene, step)]
    say(scene, step)
    for _ in range(3):
        for proxy in proxies:
            proxy.mute("requests")
        await asyncio.sleep(scene.times.lease_s * dice.uniform(0.7, 1.3))
        for proxy in proxies:
            proxy.mute("requests", on=False)
            proxy.cut_all()
        await asyncio.sleep(scene.times.heartbeat_s * dice.uniform(0.5, 3))
