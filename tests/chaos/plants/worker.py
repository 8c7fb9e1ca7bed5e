"""Bugs of workers and supervisors. They run on SQLite, whose cluster starts soonest."""

from typing import Any

from tests.chaos.plants import plant, step
from tests.chaos.swap import swap
from tidemill.model.jobs import crash
from tidemill.worker.member.heartbeat import Heartbeats
from tidemill.worker.member.respawn import Respawn


@plant("sqlite", "rescue_within_bounds", step(1, "kill member", target=0))
def nobody_sweeps() -> None:
    async def sweep(self: Heartbeats) -> float:
        return 1.0

    swap(Heartbeats, "sweep", sweep)


@plant("sqlite", "everything_drains", step(1, "kill worker", target=0), step(2, "kill worker", target=1))
def deaths_are_not_reported() -> None:
    async def retire(self: Respawn, *_: Any) -> int:
        return 0

    swap(Respawn, "_retire", retire)


@plant("sqlite", "crashes_are_counted", CHAOS_POISON="5")
def poison_is_never_given_up() -> None:
    swap(crash, "CRASH_LIMIT", 1_000)
