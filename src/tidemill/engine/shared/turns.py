"""Where each claimant stopped: kept in this process, because a shared position would be a hot row.

It is memory only: after a restart the turns begin anew, which is fair enough."""

from typing import Generic, TypeVar

from tidemill.model.queues.lane import turn_order

Q = TypeVar("Q", int, str)
"""How an engine knows a queue: by a number of its own or by name."""

CLAIMANTS_KEPT = 1_000
LANES_KEPT = 10_000


class ClaimTurns(Generic[Q]):
    """The positions of this process's claimants."""

    def __init__(self) -> None:
        self._queues: dict[bytes, str] = {}
        self._lanes: dict[tuple[bytes, Q, int], tuple[str, int]] = {}

    def queues(self, claimant: bytes, names: list[str]) -> list[str]:
        """The queues in the order of their turns."""
        return turn_order(names, self._queues.get(claimant))

    def queue_served(self, claimant: bytes, name: str) -> None:
        """This queue gave the last job."""
        self._queues.pop(claimant, None)  # the one used last stands last
        self._queues[claimant] = name
        if len(self._queues) > CLAIMANTS_KEPT:
            del self._queues[next(iter(self._queues))]

    def lane(self, claimant: bytes, queue: Q, priority: int) -> tuple[str | None, int]:
        """The group served last, and how many jobs of its turn it has given."""
        return self._lanes.get((claimant, queue, priority), (None, 0))

    def lane_served(self, claimant: bytes, queue: Q, priority: int, group: str, used: int) -> None:
        """This lane gave its `used`-th job of this turn."""
        self._lanes.pop((claimant, queue, priority), None)
        self._lanes[claimant, queue, priority] = group, used
        if len(self._lanes) > LANES_KEPT:
            del self._lanes[next(iter(self._lanes))]
