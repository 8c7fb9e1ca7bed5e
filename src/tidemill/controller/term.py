"""A term: the time for which a controller was elected, as far as the elected member may trust it.

The engine counts the lease from the moment at which it handled the request. We count it from the moment at
which we *sent* the request, which was earlier, and stop a margin before its end. So we stop before another
member can be elected, however long the answer took, unless our clock is slower than the engine's by more than
the margin.

The boot clock goes on while a process is stopped and while a machine sleeps. A process that wakes up late
sees that its term is over before it does anything.
"""

from collections.abc import Callable

from tidemill.engine.boot import boot_ns

MARGIN = 0.1
"""The part of a lease that is not trusted: clocks differ, and a step that has begun takes its time."""


class ElectedTerm:
    """See `tidemill.controller.ticks.tick.Term`."""

    def __init__(
        self, fence: int, *, sent_ns: int, lease_s: float, clock: Callable[[], int] = boot_ns
    ) -> None:
        self.fence = fence
        self._lease_s = lease_s
        self._clock = clock
        self._over = False
        self.prolong(sent_ns)

    def __repr__(self) -> str:
        return f"<term {self.fence}, {self.left_s():.1f} s left>"

    def trusted(self) -> bool:
        """May still act."""
        return self.left_s() > 0

    def left_s(self) -> float:
        """How long it may act; 0: no more."""
        return 0.0 if self._over else max(0.0, (self._until_ns - self._clock()) / 1e9)

    def prolong(self, sent_ns: int) -> None:
        """A renewal that was sent at this moment was granted."""
        self._until_ns = sent_ns + int(self._lease_s * (1 - MARGIN) * 1e9)

    def end(self) -> None:
        """From now on it is not trusted, whatever the clock says."""
        self._over = True
