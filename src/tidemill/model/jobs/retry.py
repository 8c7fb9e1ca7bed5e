"""When a failed attempt is tried again.

The wait after the k-th failed attempt has the ceiling `min(base * 2**(k-1), cap)`, or `base`
with `backoff="fixed"`. `jitter="full"` draws from [0, ceiling], so that a thousand jobs that
failed together do not come back together; `jitter="none"` takes the ceiling itself.
"""

import random
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from tidemill.model.errors import BadInput
from tidemill.model.names import is_class_name, qualified_name
from tidemill.model.numbers import check_whole
from tidemill.model.options import OptionsMeta
from tidemill.model.time import SECOND, Span, span_of

Backoff = Literal["exponential", "fixed"]
Jitter = Literal["full", "none"]

ATTEMPTS_LIMIT = 10_000
SNOOZES_LIMIT = 1_000_000

Error: TypeAlias = str | type[BaseException]


class Retry(msgspec.Struct, frozen=True, kw_only=True, metaclass=OptionsMeta):
    """How often, and how long in between. `attempts` counts all tries, the first included.

    `on` and `give_up` take an exception class, its qualified name, or several of these. They keep the names,
    and are matched along the MRO: with `on`, only those are retried; those in `give_up` never are. `give_up`
    wins. `base` and `cap` are seconds or `timedelta`s. `snoozes`: how often a job may `raise Snooze(...)`.
    """

    attempts: int = 5
    backoff: Backoff = "exponential"
    base: float = 1.0
    cap: float = 300.0
    jitter: Jitter = "full"
    on: tuple[str, ...] = ()
    give_up: tuple[str, ...] = ()
    snoozes: int = 100

    if TYPE_CHECKING:  # what it takes; the fields say what it keeps

        def __init__(
            self,
            *,
            attempts: int = 5,
            backoff: Backoff = "exponential",
            base: float | timedelta = 1.0,
            cap: float | timedelta = 300.0,
            jitter: Jitter = "full",
            on: Error | Iterable[Error] = (),
            give_up: Error | Iterable[Error] = (),
            snoozes: int = 100,
        ) -> None: ...

    def __post_init__(self) -> None:
        check_whole("attempts", self.attempts)
        if not 1 <= self.attempts <= ATTEMPTS_LIMIT:
            raise BadInput(f"attempts must lie between 1 and {ATTEMPTS_LIMIT}, not {self.attempts}")
        if not 0 <= check_whole("snoozes", self.snoozes) <= SNOOZES_LIMIT:
            raise BadInput(f"snoozes must lie between 0 and {SNOOZES_LIMIT:,}, not {self.snoozes}")
        if self.backoff not in ("exponential", "fixed"):
            raise BadInput(f'backoff is "exponential" or "fixed", not {self.backoff!r}')
        if self.jitter not in ("full", "none"):
            raise BadInput(f'jitter is "full" or "none", not {self.jitter!r}')
        for field in ("base", "cap"):
            span = span_of(getattr(self, field))
            if isinstance(getattr(self, field), timedelta):
                msgspec.structs.force_setattr(self, field, span / SECOND)
        for field in ("on", "give_up"):
            if (errors := getattr(self, field)) != ():
                msgspec.structs.force_setattr(self, field, _names_of(field, errors))

    def ceiling(self, failed: int) -> Span:
        """The longest wait after `failed` failed attempts (1 or more)."""
        if failed < 1:
            raise BadInput(f"a wait follows a failed attempt; there were {failed}")
        if self.backoff == "fixed":
            return span_of(self.base)
        # 2**63 is past every cap; the bound keeps a large attempt number from building huge integers
        return round(min(self.base * 2.0 ** min(failed - 1, 63), self.cap) * SECOND)

    def wait(self, failed: int, draw: float | None = None) -> Span:
        """The wait chosen after `failed` failed attempts. `draw` in [0, 1] makes it repeatable."""
        ceiling = self.ceiling(failed)
        if self.jitter == "none":
            return ceiling
        return round(ceiling * (random.random() if draw is None else draw))

    def retries(self, failed: int, lineage: Iterable[str]) -> bool:
        """Whether there is another attempt after `failed` of them, the last one ended by an
        exception whose classes, from its own up to the root, are named in `lineage`."""
        names = set(lineage)
        if failed >= self.attempts or names.intersection(self.give_up):
            return False
        return not self.on or bool(names.intersection(self.on))


def _names_of(field: str, errors: object) -> tuple[str, ...]:
    if isinstance(errors, str | type) or not isinstance(errors, Iterable):
        errors = (errors,)
    return tuple(_name_of(field, error) for error in errors)


def _name_of(field: str, error: object) -> str:
    if isinstance(error, str) and is_class_name(error):
        return error
    if isinstance(error, type) and issubclass(error, BaseException):
        return qualified_name(error)
    shown = qualified_name(error) if isinstance(error, type) else repr(error)
    raise BadInput(
        f"{field}= takes exception classes or their names, not {shown}: {field}=OSError, "
        f'{field}="shop.Declined", or a tuple of these'
    )
