"""Gates: one limit each, with its holders and its log.

A queue has a gate, each limited task in it has one, and with `per_key` or `limits` keys have one each.
A lane names at most those three. Concurrency is the size of the set of running jobs behind the gate,
never a counter. A rate is a log of (step, count).

**What a rate promises.** No window of its length holds more than `count` *starts*, as an observer sees
them: the first line of the functions. A claim takes permits, and the function starts a little later, sooner
here and later there. So entries count for longer than the window: for the window and a *margin* (`margin_of`:
1% of the window, 5 ms at least). The margin pays for all that is not the same from start to start:

- a run starts within half of the margin, or not at all: a run that is late is released, and its permit is
  lost (`tolerance_of`, and `ClaimedJob.start_within`);
- the other half is for what nobody can check: the way from the last check into the function, and what is not
  known of the engine's clock.

**Short windows.** Half of 1% of a second is 5 ms, and an answer of the engine alone may take longer. So while
such a gate is *pressed*, its runs start `START_DELAY` after their claim: the same for all, so starts repeat
the spacing of the permits. A gate is pressed if more than `count` permits were taken within what counts and
`START_DELAY` before that, this claim's among them. A gate that is not pressed lets its runs start at once:
were one of them early by the whole delay, no window would be overfull. So a rate that does not bind costs no
time.

**Smooth rates** give the same number of permits evenly spaced, one in each `count`-th part of the window and
its margin. A rate of many hundreds a second gives some together, at most a third of the margin's worth.

The log: what counts is cut into 1,000 steps; starts within one step share an entry; an entry counts until its
step's *end* is as long ago as `Permits.span` says. The price is at most 1/1000 a cycle.

A full gate is *parked*: one record with the instant at which the oldest entry expires (rate), or
none, which means "when a holder goes" (concurrency). Its jobs stay `ready`.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal, NamedTuple

from tidemill.model.queues.queue import Rate
from tidemill.model.time import MILLISECOND, Instant, Span

STEPS = 1_000
MARGIN = 100
"""The margin is so many parts of a window: 1% of it."""
LEAST_MARGIN: Span = 5 * MILLISECOND
"""No margin is smaller, so it is more than 1% of a window below half a second: the timers of a process are
not more exact than about a millisecond."""
START_DELAY: Span = 30 * MILLISECOND
"""How long after its claim a run starts while a gate with a short window is pressed: longer than most claims
take to be answered."""
AT_ONCE: Span = 50 * MILLISECOND
"""A gate that tolerates as much needs no such delay."""

GateKind = Literal["queue", "task", "key"]


class Permits(NamedTuple):
    """What a gate counts: at most `most` permits in any `span`."""

    most: int
    span: Span


def margin_of(rate: Rate) -> Span:
    """How much longer than the window a start counts."""
    return max(LEAST_MARGIN, rate.window // MARGIN)


@lru_cache(4_096)
def permits_of(rate: Rate) -> Permits:
    """How many permits a rate gives, and in which span."""
    whole, margin = rate.window + margin_of(rate), margin_of(rate)
    if not rate.smooth:
        return Permits(rate.count, whole)
    together = max(1, rate.count * margin // 3 // whole)
    return Permits(together, -(-whole * together // rate.count))


def tolerance_of(rate: Rate) -> Span:
    """How late a run may start, after the moment at which it should."""
    margin = margin_of(rate)
    if not rate.smooth:
        return margin // 2
    return min(margin // 3, max(LEAST_MARGIN, permits_of(rate).span // 10))


def step_length(rate: Rate) -> Span:
    """The length of one step of the log."""
    return max(1, permits_of(rate).span // STEPS)


def step_at(rate: Rate, now: Instant) -> Instant:
    """The start of the step in which a start at `now` is logged."""
    length = step_length(rate)
    return now - now % length


def counts_until(rate: Rate, step: Instant) -> Instant:
    """The instant from which an entry of this step no longer counts."""
    return step + step_length(rate) + permits_of(rate).span


def oldest_counting(rate: Rate, now: Instant) -> Instant:
    """Entries of steps before or at this one no longer count at `now`."""
    return now - step_length(rate) - permits_of(rate).span


def room_of(rate: Rate, log: Iterable[tuple[Instant, int]], now: Instant) -> int:
    """How many permits are left; 0 or less: none."""
    expired = oldest_counting(rate, now)
    return permits_of(rate).most - sum(count for step, count in log if step > expired)


def pressed(rate: Rate, log: Iterable[tuple[Instant, int]], now: Instant) -> bool:
    """Whether runs behind this gate have to start with the delay; the log has this claim's permits."""
    expired = oldest_counting(rate, now) - START_DELAY
    return sum(count for step, count in log if step > expired) > permits_of(rate).most


def opens_at(rate: Rate, log: Iterable[tuple[Instant, int]], now: Instant) -> Instant:
    """The instant at which a rate that is used up allows a start again. After the rate was lowered
    more than `count` may still count: then enough of the oldest entries have to expire."""
    expired = oldest_counting(rate, now)
    counting = sorted((step, count) for step, count in log if step > expired)
    left = sum(count for _, count in counting)
    for step, count in counting:
        left -= count
        if left < permits_of(rate).most:
            return counts_until(rate, step)
    return now
