"""When a failed attempt is tried again.

The wait after the k-th failed attempt has the ceiling `min(base * 2**(k-1), cap)`, or `base`
with `backoff="fixed"`. `jitter="full"` draws from [0, ceiling], so that a thousand jobs that
failed together do not come back together; `jitter="none"` takes the ceiling itself.
"""

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from tidemill.model.errors import BadInput
from tidemill.model.names import qualified_name
from tidemill.model.time import SECOND, Span, span_of

Backoff = Literal["exponential", "fixed"]
Jitter = Literal["full", "none"]

ATTEMPTS_LIMIT = 10_000

if TYPE_CHECKING:
    Error: TypeAlias = str | type[BaseException]
else:  # as it is stored and read back: `Retry.__post_init__` puts names in the place of classes
    Error = str


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """How often, and how long in between. `attempts` counts all tries, the first included.

    `on` and `give_up` take exception classes or their qualified names, keep the names, and are matched
    along the MRO: with `on`, only those are retried; those in `give_up` never are. `give_up` wins.
    """

    attempts: int = 5
    backoff: Backoff = "exponential"
    base: float = 1.0
    cap: float = 300.0
    jitter: Jitter = "full"
    on: tuple[Error, ...] = ()
    give_up: tuple[Error, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.attempts <= ATTEMPTS_LIMIT:
            raise BadInput(f"attempts must lie between 1 and {ATTEMPTS_LIMIT}, not {self.attempts}")
        if self.backoff not in ("exponential", "fixed"):
            raise BadInput(f'backoff is "exponential" or "fixed", not {self.backoff!r}')
        if self.jitter not in ("full", "none"):
            raise BadInput(f'jitter is "full" or "none", not {self.jitter!r}')
        span_of(self.base), span_of(self.cap)
        for field in ("on", "give_up"):
            errors = getattr(self, field)
            if errors:
                msgspec.structs.force_setattr(self, field, tuple(_name_of(error) for error in errors))

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


def _name_of(error: Error) -> str:
    if isinstance(error, str):
        return error
    if isinstance(error, type) and issubclass(error, BaseException):
        return qualified_name(error)
    raise BadInput(f"on= and give_up= take exception classes or their names, not {error!r}")
