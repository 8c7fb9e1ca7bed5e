"""Gates: one limit each, with its holders and its log.

A queue has a gate, each limited task in it has one, and with `per_key` each key has one. (A key that
`limits` names has a limit of its own instead.) A lane names at most those three. Concurrency is the
size of the set of running jobs behind the gate, never a counter. A rate is a log of (step, count):

- the window is cut into 1,000 steps; starts within one step share an entry;
- an entry counts until its step's *end* is a full window ago, so no window of that length ever
  holds more than `count` starts; the price is at most 1/1000 of the window per cycle.

A full gate is *parked*: one record with the instant at which the oldest entry expires (rate), or
none, which means "when a holder goes" (concurrency). Its jobs stay `ready`.
"""

from collections.abc import Iterable
from typing import Literal

from tidemill.model.queues.queue import Rate
from tidemill.model.time import Instant, Span

STEPS = 1_000

GateKind = Literal["queue", "task", "key"]


def step_length(rate: Rate) -> Span:
    """The length of one step of the log."""
    return max(1, rate.window // STEPS)


def step_at(rate: Rate, now: Instant) -> Instant:
    """The start of the step in which a start at `now` is logged."""
    length = step_length(rate)
    return now - now % length


def counts_until(rate: Rate, step: Instant) -> Instant:
    """The instant from which an entry of this step no longer counts."""
    return step + step_length(rate) + rate.window


def oldest_counting(rate: Rate, now: Instant) -> Instant:
    """Entries of steps before or at this one no longer count at `now`."""
    return now - step_length(rate) - rate.window


def opens_at(rate: Rate, log: Iterable[tuple[Instant, int]], now: Instant) -> Instant:
    """The instant at which a rate that is used up allows a start again. After the rate was lowered
    more than `count` may still count: then enough of the oldest entries have to expire."""
    expired = oldest_counting(rate, now)
    counting = sorted((step, count) for step, count in log if step > expired)
    left = sum(count for _, count in counting)
    for step, count in counting:
        left -= count
        if left < rate.count:
            return counts_until(rate, step)
    return now
