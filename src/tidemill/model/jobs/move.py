"""Jobs that came into another state in a step of the engine, named so that events can be emitted."""

from typing import NamedTuple

from tidemill.model.ids import JobId
from tidemill.model.jobs.job import Failure, JobState

MOVES_LIMIT = 2_000
"""The most jobs that one step names; of those on top only the number is kept."""
REASON_LIMIT = 300
"""The most characters of a reason."""


class Move(NamedTuple):
    """A job came into a state."""

    id: JobId
    state: JobState
    queue: str
    task: str
    reason: str = ""
    """Why, where a failure was recorded with it (`reason_of`)."""


class Moves:
    """What one step moved, in its order. Given to a call, which adds to it once the step is made."""

    __slots__ = ("missed", "named")

    def __init__(self) -> None:
        self.named: list[Move] = []
        self.missed = 0
        """How many more moved than are named."""

    def __bool__(self) -> bool:
        return bool(self.named or self.missed)

    def add(self, move: Move) -> None:
        """One more, by its name while there is room."""
        if len(self.named) < MOVES_LIMIT:
            self.named.append(move)
        else:
            self.missed += 1

    def take(self, other: "Moves") -> None:
        """Those of a step that is made now."""
        self.named += other.named
        self.missed += other.missed


def reason_of(failure: Failure) -> str:
    """What a failure says, in one short text: the error or the kind, and the message."""
    return f"{failure.error or failure.kind}: {failure.message}"[:REASON_LIMIT]
