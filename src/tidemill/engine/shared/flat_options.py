"""What the steps of every engine ask of a queue's options, worked out, so that no store reads them itself."""

from typing import NamedTuple

from tidemill.model.queues.gate import permits_of
from tidemill.model.queues.queue import Keep, Limit, QueueOptions
from tidemill.model.queues.starts import StartRules, start_rules
from tidemill.model.time import Span, span_of


class FlatLimit(NamedTuple):
    """A limit; None: it has no such bound."""

    concurrency: int | None = None
    rate_count: int | None = None
    rate_window: Span | None = None
    """What a gate counts by (`model.gate.permits_of`): the window with its margin, or a smooth rate's part of
    it."""


class FlatOptions(NamedTuple):
    """A queue's options."""

    shaped: bool
    """Lanes have groups: keyed, or with limited tasks."""
    limited: bool
    """Some gate may hold jobs back."""
    own: FlatLimit | None
    per_key: FlatLimit | None
    """Of the keys that have no limit of their own."""
    key_limited: bool
    """Some key has a gate."""
    limits: dict[str, FlatLimit]
    """Of those that have one; such a limit may have no bounds, in the place of `per_key`."""
    tasks: dict[str, FlatLimit]
    """Only those that are limited."""
    starts: StartRules | None
    """When jobs under a rate start; None: none are."""
    keep_ages: list[Span | None]
    """Of completed, dead and cancelled jobs."""
    keep_counts: list[int | None]
    keeps_all: bool
    """Nothing of an ended job is dropped with its end."""


def flat_options(options: QueueOptions, usual: Keep) -> FlatOptions:
    """`usual`: what is kept of completed and cancelled jobs where a queue says nothing."""
    keeps = options.keeps(usual)
    own, per_key = flat_limit(options.own), flat_limit(options.per_key)
    limits = {task: flat_limit(limit) for task, limit in options.per_task.items()}
    tasks = {task: limit for task, limit in limits.items() if limit is not None}
    return FlatOptions(
        shaped=options.keyed or bool(tasks),
        limited=own is not None or options.key_limited or bool(tasks),
        own=own,
        per_key=per_key,
        key_limited=options.key_limited,
        limits={key: flat_limit(limit) or FlatLimit() for key, limit in options.limits.items()},
        tasks=tasks,
        starts=start_rules(options),
        keep_ages=[None if keep.age is None else span_of(keep.age) for keep in keeps],
        keep_counts=[keep.count for keep in keeps],
        keeps_all=options.keep_body and not any(keep.nothing for keep in keeps),
    )


def flat_limit(limit: Limit | None) -> FlatLimit | None:
    """None: it bounds nothing."""
    if not limit:
        return None
    if limit.rate is None:
        return FlatLimit(limit.concurrency)
    permits = permits_of(limit.rate)
    return FlatLimit(limit.concurrency, permits.most, permits.span)
