"""The engine-level benchmark: the facets themselves, without worker or application."""

from collections.abc import Awaitable, Callable, Collection

from bench.measures import claim, crowd, enqueue, lanes, limits, pair
from bench.plan import Plan
from bench.progress import Steps
from bench.rounds import Comparison

Measure = Callable[[Plan, Steps], Awaitable[list[Comparison]]]

MEASURES: dict[str, Measure] = {
    "enqueue": enqueue.measure,
    "claim": claim.measure,
    "pair": pair.measure,
    "lanes": lanes.measure,
    "limits": limits.measure,
    "finished": crowd.finished,
    "scheduled": crowd.scheduled,
}


async def run(plan: Plan, only: Collection[str], steps: Steps) -> list[Comparison]:
    """The measures named, or all."""
    comparisons = []
    for name, measure in MEASURES.items():
        if not only or name in only:
            comparisons += await measure(plan, steps)
    return comparisons
