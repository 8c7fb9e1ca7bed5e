"""The engine's clock, as this process knows it: for runs that have to start at a moment of that clock.

An answer that names the engine's time says that this moment lay between the sending of the call and the
arrival of the answer. So each answer gives two bounds for what the engine's clock is ahead of ours (the boot
clock). Several answers together give better bounds than each alone: the quickest way there and the quickest
way back decide. Clocks drift, so old bounds widen with time; and where an answer contradicts them, a clock
was set, and that answer alone counts.
"""

from tidemill.model.time import Instant

DRIFT = 10_000
"""Two clocks drift apart by at most one part in so many."""
MICROSECOND_NS = 1_000


class EngineClock:
    """Moments of the engine's clock in nanoseconds of the boot clock."""

    def __init__(self) -> None:
        self._low = self._high = 0
        self._learned_ns: int | None = None

    def learn(self, now: Instant, sent_ns: int, received_ns: int) -> None:
        """The engine named its time in the answer to a call."""
        low = now * MICROSECOND_NS - received_ns
        high = (now + 1) * MICROSECOND_NS - sent_ns
        if self._learned_ns is not None:
            drift = max(0, received_ns - self._learned_ns) // DRIFT
            both = max(low, self._low - drift), min(high, self._high + drift)
            if both[0] <= both[1]:
                low, high = both
        self._low, self._high, self._learned_ns = low, high, received_ns

    def about_ns(self, moment: Instant) -> int:
        """When that is, as well as we know."""
        return moment * MICROSECOND_NS - (self._low + self._high) // 2

    def surely_before_ns(self, moment: Instant) -> int:
        """The last of our moments that certainly is not after it."""
        return moment * MICROSECOND_NS - self._high
