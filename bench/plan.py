"""How much is measured, and where."""

from dataclasses import dataclass
from pathlib import Path

from bench.stores import Store

BULK = 1_000
"""Jobs in one bulk call."""

WARM_UP_JOBS = 20_000
"""Enough to let a WAL grow to its full size, after which it is written in place."""
CROWD = 1_000_000
"""Finished or scheduled jobs in the way, at scale 1."""
LANES = 10_000
"""Keyed lanes, at scale 1."""


@dataclass(frozen=True)
class Plan:
    """Sizes and places of one run."""

    folder: Path
    store: Store
    durability: str = "full"
    jobs: int = 20_000
    """Jobs of one timed turn at batch 100."""
    rounds: int = 5
    held_s: float = 20.0
    """How long a transaction is held open."""
    scale: float = 1.0
    """Shrinks what stands in the way: 0.01 means 10,000 finished jobs."""

    def jobs_at(self, batch: int) -> int:
        """Jobs of one timed turn: fewer where each costs a commit of its own."""
        share = {1: 20, 10: 4}.get(batch, 1)
        return max(batch, self.jobs // share)

    @property
    def warm_up(self) -> int:
        return min(WARM_UP_JOBS, 2 * self.jobs)

    @property
    def crowd(self) -> int:
        return max(1, round(CROWD * self.scale))

    @property
    def lanes(self) -> int:
        return max(2, round(LANES * self.scale))

    def url(self, name: str, durability: str | None = None) -> str:
        """The engine's place of that name."""
        return self.store.url(name, durability)
