"""Jobs that a call has moved, named among its signals while somebody listens: see `naming_v1`."""

from collections.abc import Sequence
from typing import NamedTuple

from tidemill.model.job import STATES
from tidemill.model.move import Move, Moves
from tidemill.model.time import Instant


class Asked(NamedTuple):
    """The parameter `now` of a call that is to name what it moves."""

    now: Instant | None


def asked(now: Instant | None, moves: Moves | None) -> Instant | Asked | None:
    """`now` as a call takes it."""
    return now if moves is None else Asked(now)


def marks_of(parameters: Sequence[object]) -> str:
    """The places of parameters in a call."""
    return ", ".join(
        f"{{schema}}.naming_v1(${n})" if isinstance(each, Asked) else f"${n}"
        for n, each in enumerate(parameters, 1)
    )


def values_of(parameters: Sequence[object]) -> list[object]:
    """What is sent in these places."""
    return [each.now if isinstance(each, Asked) else each for each in parameters]


def take_named(signals: Sequence[str], moves: Moves | None) -> Sequence[str]:
    """The signals alone; what else stands among them goes to `moves`."""
    if moves is None:
        return signals
    for text in signals:
        if text == "!":
            moves.missed += 1
        elif text.startswith("!"):
            state, job_id, queue, task, reason = text[1:].split("\n", 4)
            moves.named.append(Move(bytes.fromhex(job_id), STATES[int(state)], queue, task, reason))
    return [text for text in signals if not text.startswith("!")]
