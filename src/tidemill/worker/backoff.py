"""How long to wait before a call is repeated."""

import random

FIRST_S = 0.05
LONGEST_S = 2.0


class Backoff:
    """Doubling waits with full jitter below half, so that a thousand workers that lost their engine
    together do not come back together."""

    def __init__(self, first_s: float = FIRST_S, longest_s: float = LONGEST_S) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._ceiling_s = first_s

    def next_s(self) -> float:
        """The next wait, in seconds: between half of the ceiling and the ceiling, which then doubles."""
        ceiling = self._ceiling_s
        self._ceiling_s = min(2 * ceiling, self._longest_s)
        return ceiling * random.uniform(0.5, 1.0)

    def reset(self) -> None:
        """The call worked: begin again with the shortest wait."""
        self._ceiling_s = self._first_s


def jittered(seconds: float) -> float:
    """About this long: 75% to 100% of it, so that idle workers do not poll all at once."""
    return seconds * random.uniform(0.75, 1.0)
