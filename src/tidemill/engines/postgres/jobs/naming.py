"""Which jobs a call has moved: while events have listeners, the call names them among its signals.

See `naming_v1` in schema/jobs/moves.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from tidemill.model.jobs.job import STATES
from tidemill.model.jobs.move import Move, Moves
from tidemill.model.time import Instant


class NowNaming(NamedTuple):
    """The parameter `now` of a call that names what it moves."""

    now: Instant | None


def now_naming(now: Instant | None, moves: Moves | None) -> Instant | NowNaming | None:
    """The parameter `now` of a call: with `moves`, the call names what it moves."""
    return now if moves is None else NowNaming(now)


def marks_of(parameters: Sequence[object]) -> str:
    """The placeholders of a call's parameters."""
    return ", ".join(
        f"{{schema}}.naming_v1(${n})" if isinstance(each, NowNaming) else f"${n}"
        for n, each in enumerate(parameters, 1)
    )


def values_of(parameters: Sequence[object]) -> list[object]:
    """The values that are sent for these placeholders."""
    return [each.now if isinstance(each, NowNaming) else each for each in parameters]


def take_named(signals: Sequence[str], moves: Moves | None) -> Sequence[str]:
    """The signals alone. The moves among them are added to `moves`."""
    if moves is None:
        return signals
    for text in signals:
        if text == "!":
            moves.missed += 1
        elif text.startswith("!"):
            state, job_id, queue, task, reason = text[1:].split("\n", 4)
            moves.named.append(Move(bytes.fromhex(job_id), STATES[int(state)], queue, task, reason))
    return [text for text in signals if not text.startswith("!")]
