"""An operator: overrides and resets a limit of one queue, pauses and resumes it, while the run goes on.

One wish after the other. A call whose end is unknown is repeated until it is answered, and some time passes
before the next wish, so that an answer that was lost on the way belongs to the wish of its time.
"""

import random
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle
from typing import Any, TypeAlias

from tests.chaos import app as tasks
from tests.chaos.queues import OVERRIDES, VALVE

NAME = "operator"
BETWEEN_S = 0.6
WISHES = ("override", "override", "reset", "pause")
STAYS_PAUSED = 0.6
"""So often something else is changed first."""

Wish: TypeAlias = tuple[str, str, Callable[[], Any]]
"""The kind of an operation, its text, and how it is done."""
Do: TypeAlias = Callable[[str, str, Callable[[], Any]], bool]
"""Does it and writes it down. False: nobody knows its end."""


class Operator:
    """One of them, in the hands of a producer."""

    def __init__(self, dice: random.Random, do: Do) -> None:
        self._dice = dice
        self._do = do
        self._paused = True
        """As far as it knows: a former operator may have died with the queue paused."""
        self._limits = cycle(OVERRIDES)
        self._unanswered: Wish | None = None
        self._next_at = 0.0

    def act(self) -> None:
        """The next wish, if it is time for one; the last one again, if nobody knows its end."""
        if time.monotonic() < self._next_at:
            return
        wish = self._unanswered or self._wish()
        self._unanswered = None if self._do(*wish) else wish
        self._next_at = time.monotonic() + BETWEEN_S * (self._unanswered is None)

    def _wish(self) -> Wish:
        queues = tasks.app.queues
        if self._paused and self._dice.random() > STAYS_PAUSED:
            self._paused = False
            return "resume", "", partial(queues.resume, VALVE, by=NAME)
        match self._dice.choice(WISHES):
            case "override":
                limit = next(self._limits)
                return "override", str(limit), partial(queues.set, VALVE, concurrency=limit, by=NAME)
            case "reset":
                return "reset", "", partial(queues.reset, VALVE, by=NAME)
            case _:
                self._paused = True
                return "pause", "", partial(queues.pause, VALVE, by=NAME)
