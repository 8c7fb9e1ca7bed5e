"""A member's candidate for controller, if it stands."""

from penstock.controller.controller import Controller
from penstock.controller.election import Election
from penstock.controller.ticks import all_ticks
from penstock.engine.protocol import Engine
from penstock.worker.config import WorkerConfig


def candidate(engine: Engine, config: WorkerConfig, member: bytes) -> Controller | None:
    """None: this member does not stand."""
    if "controller" not in config.roles:
        return None
    election = Election(engine, member=member, lease_s=config.lease_s, beat_s=config.beat_s)
    return Controller(engine, all_ticks(), election)
