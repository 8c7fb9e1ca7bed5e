"""What the controller runs: ticks, each one bounded chore of the cluster, one file each.

**Two controllers at once must do no harm.** A term ends by the clock, and a process can be stopped between
its last check of the clock and its write. So a tick never relies on being alone. Each write is guarded by
what it finds: `schedules.fire` by the tick's time, `prune` by what is left to delete. Doing it twice finds
nothing to do. Being elected only saves work. A tick with several writes in one run checks `term.trusted()`
between them, and stops when the term is over.
"""

from typing import Protocol

from tidemill.engine.protocol import Engine


class Term(Protocol):
    """The time for which a controller was elected."""

    @property
    def fence(self) -> int:
        """Grows with every election."""
        ...

    def trusted(self) -> bool:
        """May still act: request start + lease - margin is not over."""
        ...


class Tick(Protocol):
    """One chore."""

    @property
    def name(self) -> str:
        """For people and logs."""
        ...

    @property
    def every(self) -> float:
        """Seconds between runs when nothing says sooner."""
        ...

    async def run(self, engine: Engine, term: Term) -> float | None:
        """One step, bounded in work and time. Returns the seconds until the next run (0: there is more to do
        at once); None: `every`. An `EngineError` is logged by the loop, which tries again."""
        ...
