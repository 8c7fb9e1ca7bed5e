"""How many workers the queues want, as the engine knows it now. For the command line and the server."""

from tidemill.engine.protocol import Engine
from tidemill.model.scaling.demand import WAIT_S, Demand, demand_of
from tidemill.model.time import MINUTE


async def read_demand(
    engine: Engine, *, queue: str | None = None, slots_per_worker: int, wait_s: float = WAIT_S
) -> Demand:
    """What all queues want, or this one (`UnknownQueue` if there is none). `slots_per_worker` counts where no
    worker is live that could say how many it has."""
    counts = await engine.inspect.counts(window=2 * MINUTE)
    queues = await engine.queues.list()
    members = await engine.members.list()
    window = MINUTE + await engine.now() % MINUTE  # the minute before, and this one so far
    return demand_of(
        counts,
        queues,
        members,
        only=queue,
        window=window,
        slots_per_worker=slots_per_worker,
        wait_s=wait_s,
    )
