"""Promotion of what no worker asks for.

That is: due jobs of queues that are paused or that nobody claims from, jobs that expired there, and
children of which a step had left some blocked.

Due times do not depend on it: every claim moves the due jobs of its queues itself, with a timer for the
next, so that they are met without a leader. This keeps the states true where no claim comes, in bounded
steps.
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
