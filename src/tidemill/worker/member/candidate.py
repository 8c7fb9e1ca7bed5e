"""A member's candidate for controller, if it stands for election."""

import asyncio

from tidemill.controller.controller import Controller
from tidemill.controller.election import Election
from tidemill.controller.ticks.all import all_ticks
from tidemill.engine.protocol import Engine
from tidemill.worker.config import WorkerConfig


def candidate(engine: Engine, config: WorkerConfig, member: bytes) -> Controller | None:
    """The candidate of this member; None: it does not stand."""
    if "controller" not in config.roles:
        return None
    election = Election(engine, member=member, lease_s=config.lease_s, heartbeat_s=config.heartbeat_s)
    return Controller(engine, all_ticks(), election)


async def stand(one: Controller, known: asyncio.Event, published: asyncio.Event) -> None:
    """Stand once the engine knows the member and its tasks. An elected controller must be found among the
    members. And its first promotion may bury jobs that have expired: their handlers must be known by then."""
    await known.wait()
    await published.wait()
    await one.run()
