"""Promotion where no worker claims.

It moves due jobs of queues that are paused or that no worker claims from, jobs that expired there, and
dependents that an earlier step left blocked.

Due times do not depend on it: every claim promotes the due jobs of its queues itself, and its answer names
the next due time. So due times are met without a leader. This tick keeps the states true where no claim
comes, in bounded steps.
"""

from tidemill.controller.ticks.tick import Term
from tidemill.engine.protocol import Engine

EVERY_S = 5.0
BUSY_S = 0.05


class Promotion:
    """See `tidemill.controller.ticks.tick.Tick`."""

    name = "promotion"
    every = EVERY_S

    async def run(self, engine: Engine, term: Term) -> float | None:
        promoted = await engine.jobs.promote()
        return BUSY_S if promoted.wait == 0 else None
