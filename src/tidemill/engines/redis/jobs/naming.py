"""Jobs that a script has moved, as `S.moved` names them while events have listeners."""

from collections.abc import Sequence
from typing import Any

from tidemill.model.jobs.job import STATES
from tidemill.model.jobs.move import REASON_LIMIT, Move, Moves


def take_named(moves: Moves, named: Sequence[Any], unnamed: int) -> None:
    """Add what stands in an answer: id, state, queue, task and reason, one after another."""
    for start in range(0, len(named), 5):
        job_id, state, queue, task, reason = named[start : start + 5]
        why = reason.decode(errors="ignore")[:REASON_LIMIT]
        moves.named.append(Move(job_id, STATES[state], queue.decode(), task.decode(), why))
    moves.missed += unnamed
