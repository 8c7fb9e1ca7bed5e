"""Samples every queue once a minute: its stock, what arrived, how long the oldest ready job has waited.

A sample is taken `SETTLE` after the end of its minute: until then, transactions that began in that minute
have ended, and what ended in it is known. The moment is not exact, and need not be (`model.stats.sample`).
The sample before is read from the engine, no matter which controller took it. The engine keeps the first
samples of a minute, so two controllers at once, or a repeat, change nothing.
"""

from tidemill.controller.ticks.snapshot import HandClock
from tidemill.controller.ticks.tick import Term
from tidemill.engine.protocol import Engine
from tidemill.model.stats.sample import (
    SAMPLES_BACK,
    SAMPLES_LIMIT,
    is_sampled,
    last_minute,
    last_sample,
    sampled,
)
from tidemill.model.time import MINUTE, SECOND, Instant, Span

EVERY_S = 60.0
SETTLE: Span = 2 * SECOND


class StatisticsTick:
    """See `tidemill.controller.ticks.tick.Tick`. `clock`: for tests that move the time by hand."""

    name = "statistics"
    every = EVERY_S

    def __init__(self, *, clock: HandClock | None = None) -> None:
        self._clock = clock

    async def run(self, engine: Engine, term: Term) -> float | None:
        at = None if self._clock is None else self._clock.now
        now = await engine.now() if at is None else at
        minute = last_minute(now)
        if now - now % MINUTE + SETTLE > now:
            return _until_settled(now)
        series = await engine.inspect.stats(
            since=minute - SAMPLES_BACK * MINUTE, until=minute + MINUTE, step=MINUTE
        )
        if is_sampled(series, minute):
            return _until_settled(now)
        counts = await engine.inspect.counts(window=MINUTE, now=at)
        if at is None and last_minute(await engine.now()) != minute:
            return 0  # the window that was counted may be of the next minute
        if not term.trusted():
            return None
        samples = sampled(counts, last_sample(series, minute), now)
        await engine.queues.sample(minute, samples[:SAMPLES_LIMIT], now=at)
        return _until_settled(now)


def _until_settled(now: Instant) -> float:
    """Seconds until the next sample."""
    return ((SETTLE - now) % MINUTE or MINUTE) / SECOND
