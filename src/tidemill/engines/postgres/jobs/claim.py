"""Taking jobs: what a claim sends, and how its answer is read."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec

from tidemill.engine.shared.codes import refusal
from tidemill.engine.shared.turns import ClaimTurns
from tidemill.engines.postgres.db.connection import Row
from tidemill.engines.postgres.order.cursors import Cursors
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.run import Claim, ClaimedJob, ClaimRequest
from tidemill.model.queues.lane import PRIORITIES
from tidemill.model.queues.starts import StartRules, set_starts

_retry = lru_cache(1_024)(msgspec.json.Decoder(Retry).decode)
_encode = msgspec.json.Encoder().encode
_RETRY = 13
"""The position of `retry` in a row, after the head."""

NO_CLAIM: tuple[object, ...] = (None, None, None, [], [], 0, 0, None, [], "[]", "[]", [])
"""The parameters of a settle without a claim."""


class ClaimMemory:
    """What this process remembers between its claims."""

    def __init__(self) -> None:
        self.cursors = Cursors()
        self._turns = ClaimTurns[str]()

    def parameters(self, request: ClaimRequest) -> tuple[object, ...]:
        """Those of `claim_v1`, without `now`."""
        wants = {want.queue: want.most for want in request.wants if want.most != 0}
        names = self._turns.queues(request.claimant, list(wants))
        lanes = [self.cursors.busy(name) for name in names]
        turns = [self._turns_in(request.claimant, name) for name in names]
        return (
            request.member, request.claimant, request.number, names, [wants[name] for name in names],
            request.most, min(request.suspects, request.most),
            None if request.ids is None else list(request.ids),
            self.cursors.plain(names), _encode(lanes).decode() if any(lanes) else "[]",
            _encode(turns).decode() if any(turns) else "[]", list(request.unknown),
        )  # fmt: skip

    def answer(
        self, request: ClaimRequest, head: dict[str, Any], rows: Sequence[Row], generation: int
    ) -> Claim:
        """The claim in these rows. Remembers where it stopped. `generation`: of the cursors with which the
        claim was sent."""
        refused = head.get("refused")
        if refused is not None:
            raise refusal(refused, request, head.get("number", 0))
        rows = sorted(rows, key=_fence)
        jobs = [_job(row) for row in rows]
        if starts := head.get("starts"):
            set_starts(jobs, {name: (_rules(rules), pressure) for name, (rules, pressure) in starts.items()})
        if head.get("again"):
            return Claim(jobs, wait=0, now=head["now"])
        if request.ids is None:
            self._remember(request, head, rows, seen=generation == self.cursors.generation)
        return Claim(jobs, None if len(jobs) >= request.most else head.get("wait"), head["now"])

    def _remember(
        self, request: ClaimRequest, head: dict[str, Any], rows: Sequence[Row], *, seen: bool
    ) -> None:
        if seen:
            for row in rows:
                self.cursors.taken(row[5], row[6], row[18], row[23], row[3])
            for queue in head["exhausted"]:
                self.cursors.exhausted(queue, head["seen"])
        for queue, turns in head["turns"].items():
            for priority, (lane, used) in turns.items():
                self._turns.lane_served(request.claimant, queue, int(priority), lane, used)
        if rows:
            self._turns.queue_served(request.claimant, rows[-1][5])

    def _turns_in(self, claimant: bytes, queue: str) -> dict[str, tuple[str, int]]:
        found = {}
        for priority in PRIORITIES:
            lane, used = self._turns.lane(claimant, queue, priority)
            if lane is not None:
                found[str(priority)] = (lane, used)
        return found


def _rules(rules: dict[str, Any]) -> StartRules:
    return msgspec.convert(rules, StartRules)


def _fence(row: Row) -> int:
    fence: int = row[2]
    return fence


def _job(row: Row) -> ClaimedJob:
    if row[1 + _RETRY] is None:
        return ClaimedJob(*row[1:23])
    fields = list(row[1:23])
    fields[_RETRY] = _retry(fields[_RETRY])
    return ClaimedJob(*fields)
