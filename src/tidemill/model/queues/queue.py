"""A queue's options: limits, rates, defaults for its jobs, retention."""

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

import msgspec

from tidemill.model.errors import BadInput
from tidemill.model.jobs.retry import Retry
from tidemill.model.names import check_key, check_task
from tidemill.model.numbers import check_whole
from tidemill.model.options import OptionsMeta
from tidemill.model.time import DAY, SECOND, Span, span_of

_RATE = re.compile(r"\s*(\d+)\s*/\s*(\d*\.?\d*)\s*(ms|s|m|h|d)(\s+smooth)?\s*")
_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}

COUNT_LIMIT = 1_000_000_000
WEIGHT_LIMIT = 100
LIMITS_LIMIT = 1_000
"""How many keys of a queue have limits of their own: they are read with its options, by each claim."""


class Rate(msgspec.Struct, frozen=True, metaclass=OptionsMeta):
    """At most `count` starts in any window of `per` seconds. All of them may come at once, and then none for
    the rest of the window; `smooth`: evenly spaced."""

    count: int
    per: float = 1.0
    smooth: bool = False

    if TYPE_CHECKING:  # what it takes; the fields say what it keeps

        def __init__(self, count: int, per: float | timedelta = 1.0, smooth: bool = False) -> None: ...

    def __post_init__(self) -> None:
        if isinstance(self.count, str) and _RATE.fullmatch(self.count):
            raise BadInput(f'a rate in words is read by Rate.parse("{self.count}"), and every rate= takes it')
        check_whole("count", self.count)
        if isinstance(self.per, timedelta):
            msgspec.structs.force_setattr(self, "per", self.per.total_seconds())
        if isinstance(self.per, bool) or not isinstance(self.per, int | float):
            raise BadInput(f"per is a number of seconds, not {type(self.per).__name__} ({self.per!r})")
        if not 1 <= self.count <= COUNT_LIMIT:
            raise BadInput(f"a rate allows between 1 and {COUNT_LIMIT} starts, not {self.count}")
        if not 0.001 <= self.per <= 366 * DAY / SECOND:
            raise BadInput(f"a rate's window lies between 1 ms and 366 days, not {self.per} s")
        if not isinstance(self.smooth, bool):
            raise BadInput(f"smooth is True or False, not {self.smooth!r}: Rate(100, per=60, smooth=True)")

    @classmethod
    def parse(cls, text: "str | Rate") -> "Rate":
        """`"100/m"`, `"50/10s"`, `"5/h"`, `"100/m smooth"`; a `Rate` is returned as it is."""
        if isinstance(text, Rate):
            return text
        found = _RATE.fullmatch(text) if isinstance(text, str) else None
        try:
            if found is None:
                raise ValueError
            per = float(found[2] or 1) * _UNIT[found[3]]
            return cls(int(found[1]), per=per, smooth=found[4] is not None)
        except BadInput:
            raise
        except ValueError:
            raise BadInput(
                f'{text!r} is not a rate: write "100/m", "50/10s" or Rate(50, per=10); for evenly spaced '
                'starts write "100/m smooth" or Rate(100, per=60, smooth=True)'
            ) from None

    @property
    def window(self) -> Span:
        return span_of(self.per)


class Limit(msgspec.Struct, frozen=True, kw_only=True, metaclass=OptionsMeta):
    """How many at once, and how many starts in a window ("100/m" or a `Rate`). None: no such limit."""

    concurrency: int | None = None
    rate: Rate | None = None

    if TYPE_CHECKING:  # what it takes; the fields say what it keeps

        def __init__(self, *, concurrency: int | None = None, rate: str | Rate | None = None) -> None: ...

    def __post_init__(self) -> None:
        if self.rate is not None and not isinstance(self.rate, Rate):
            msgspec.structs.force_setattr(self, "rate", Rate.parse(self.rate))
        if (
            self.concurrency is not None
            and not 1 <= check_whole("concurrency", self.concurrency) <= COUNT_LIMIT
        ):
            raise BadInput(
                f"concurrency lies between 1 and {COUNT_LIMIT}, not {self.concurrency}; "
                "to stop a queue, pause it"
            )

    def __bool__(self) -> bool:
        return self.concurrency is not None or self.rate is not None


class Keep(msgspec.Struct, frozen=True, kw_only=True, metaclass=OptionsMeta):
    """How long finished jobs stay: the younger than `age` and the newest `count`. None: no bound.

    `Keep(count=0)` deletes at once and leaves a tombstone for `TOMBSTONE_AGE`."""

    age: float | None = None
    count: int | None = None

    if TYPE_CHECKING:  # what it takes; the fields say what it keeps

        def __init__(self, *, age: float | timedelta | None = None, count: int | None = None) -> None: ...

    def __post_init__(self) -> None:
        if self.age is not None:
            span = span_of(self.age)
            if isinstance(self.age, timedelta):
                msgspec.structs.force_setattr(self, "age", span / SECOND)
        if self.count is not None and not 0 <= check_whole("count", self.count) <= COUNT_LIMIT:
            raise BadInput(f"a retention count lies between 0 and {COUNT_LIMIT}, not {self.count}")

    @property
    def nothing(self) -> bool:
        return self.count == 0


TOMBSTONE_AGE: Span = 3_600 * SECOND
"""How long a job that was deleted on completion still answers a repeated call."""

FOREVER = Keep()
KEEP_ENDED = Keep(age=86_400.0, count=1_000_000)
"""What an engine keeps of completed and cancelled jobs unless it says otherwise (`Engine.keeps`)."""


class QueueOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that can be said of a queue. Precedence: call > task > queue > app."""

    concurrency: int | None = None
    """Running at once in the whole cluster."""
    rate: Rate | None = None
    """Starts in a window, in the whole cluster."""
    per_key: Limit | None = None
    """The same for each key."""
    limits: dict[str, Limit] = {}
    """Single keys' own limits, each in the place of `per_key`."""
    per_task: dict[str, Limit] = {}
    """The same for single tasks of this queue."""
    per_worker: Limit | None = None
    """Kept by each worker process for itself, through the `most` of its `Want`s; engines only store it."""
    fair_by: Literal["key"] | None = None
    """Each key gets a lane of its own, and lanes take turns."""
    weights: dict[str, int] = {}
    """Turns a key gets per round; 1 where nothing is said."""
    timeout: float | None = None
    retry: Retry | None = None
    keep_completed: Keep | None = None
    """None: as the engine keeps by itself."""
    keep_dead: Keep = FOREVER
    keep_cancelled: Keep | None = None
    """The same."""
    keep_body: bool = True
    """False: payload and result are dropped on completion; such a job cannot be replayed."""

    def __post_init__(self) -> None:
        Limit(concurrency=self.concurrency, rate=self.rate)
        if self.fair_by not in (None, "key"):
            raise BadInput(f'fair_by is "key" or nothing, not {self.fair_by!r}')
        for task in self.per_task:
            check_task(task)
        if len(self.limits) > LIMITS_LIMIT:
            raise BadInput(
                f"at most {LIMITS_LIMIT} keys have limits of their own, not {len(self.limits)}: say in "
                "per_key= what holds for the others"
            )
        for key in (*self.limits, *self.weights):
            if check_key(key) is None:
                raise BadInput("a key is a string, not NoneType; the jobs without a key have the key ''")
        for key, weight in self.weights.items():
            if type(weight) is not int or not 1 <= weight <= WEIGHT_LIMIT:
                raise BadInput(f"the weight of {key!r} lies between 1 and {WEIGHT_LIMIT}, not {weight}")
        if self.weights and not self.keyed:
            raise BadInput('weights need lanes by key: add fair_by="key" or per_key=Limit(...)')
        if self.timeout is not None and span_of(self.timeout) == 0:
            raise BadInput("a timeout must be longer than 0 s; leave it out for none")

    @property
    def own(self) -> Limit:
        """The limit of the queue itself."""
        return Limit(concurrency=self.concurrency, rate=self.rate)

    @property
    def keyed(self) -> bool:
        """Whether the queue's lanes are cut by key."""
        return self.fair_by == "key" or self.key_limited

    @property
    def key_limited(self) -> bool:
        """Whether some key has a gate."""
        return bool(self.per_key) or any(self.limits.values())

    def keeps(self, usual: Keep) -> tuple[Keep, Keep, Keep]:
        """What is kept of completed, dead and cancelled jobs where an engine's own default is `usual`."""
        return self.keep_completed or usual, self.keep_dead, self.keep_cancelled or usual

    def limit_of_task(self, task: str) -> Limit | None:
        """The task's limit in this queue, if it really limits something."""
        return self.per_task.get(task) or None

    def limit_of_key(self, key: str | None) -> Limit | None:
        """The limit of the jobs of a key, if something limits them."""
        return self.limits.get(key or "", self.per_key) or None
