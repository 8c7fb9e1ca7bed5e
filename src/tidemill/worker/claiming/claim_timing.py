"""When to claim, and how many jobs. `exchange` makes the trips.

There is always a next moment to claim. It is at once after a signal, or when the last claim was filled. It is
the moment that the engine named (`Claim.wait`: a due job, a rate that opens). And it is after `poll_s` in any
case, jittered, because signals may be lost. So an idle worker claims about once in `poll_s`.

Nothing is claimed while there is no room, while we drain, while a stuck job is about to end this process, or
while our lease is not fresh; nor for a moment after a refusal.

How many: the free slots, and as many more as may wait in the buffer. Of jobs that must not wait there, never
more than the free slots (`claim_size`).
"""

import asyncio
from collections.abc import Callable

import msgspec

from tidemill.engine.boot import boot_ns
from tidemill.engine.protocol import BATCH_LIMIT
from tidemill.model.errors import ClaimantRetired, Refused
from tidemill.model.jobs.run import Claim, ClaimRequest
from tidemill.model.time import Span
from tidemill.worker.backoff import Backoff, jittered
from tidemill.worker.claiming.claim_size import ClaimBounds, ClaimSize
from tidemill.worker.claiming.slots import Slots
from tidemill.worker.claiming.unknown_tasks import UnknownTasks
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.running.stopping import Stopping

SUSPENDED_POLL_S = 0.1
"""How often to check whether the lease is fresh again, or a stuck job has ended."""
AGAIN_S = 0.002
"""The pause before a claim that the engine wants repeated at once, though it gave nothing."""


class ClaimTiming:
    """The claims of one claimant, numbered. `take_claim_soon`: whether a signal has come since the last
    call."""

    def __init__(
        self,
        held_table: HeldTable,
        slots: Slots,
        stops: Stopping,
        claim_size: ClaimSize,
        unknown: UnknownTasks,
        *,
        take_claim_soon: Callable[[], bool],
        member: bytes,
        claimant: bytes,
        poll_s: float,
        takes_suspects: bool,
        supervised: bool,
    ) -> None:
        self._held_table = held_table
        self._slots = slots
        self._stops = stops
        self._claim_size = claim_size
        self._unknown = unknown
        self._take_claim_soon = take_claim_soon
        self._member = member
        self._claimant = claimant
        self._poll_s = poll_s
        self._takes_suspects = takes_suspects
        self._supervised = supervised
        self._number = 1
        self._claim_at = 0.0
        self._soon = False
        self._refused_until = 0.0
        self._refusals = Backoff()
        self._waits_for_heartbeat = True
        self._time = asyncio.get_running_loop().time
        self._answered_at = self._time()

    def heartbeat_answered(self) -> bool:
        """A heartbeat was answered. Returns whether a claim waited for that."""
        waited = self._waits_for_heartbeat
        if waited:
            self._waits_for_heartbeat = False
            self._refused_until = self._claim_at = 0.0
        return waited

    def patience(self) -> float | None:
        """How long to wait before the next claim; None: until something happens."""
        self._check_claim_soon()
        if self._suspended():
            return SUSPENDED_POLL_S
        if not self._most():
            return None
        return max(0.0, max(self._claim_at, self._refused_until) - self._time())

    def request(self, *, anyway: bool) -> ClaimRequest | None:
        """The claim to make now, if any. `anyway`: there is a trip to the engine in any case. A claim costs
        little then, and sees the permits that the trip's outcomes free."""
        self._check_claim_soon()
        now, most, free = self._time(), self._most(), self._slots.free
        due = now >= self._refused_until and (anyway or now >= self._claim_at)
        if not due or not most or self._suspended():
            return None
        wants = self._claim_size.queues(free, self._slots.of_queue, now)
        if not wants:
            self._claim_at = now + self._until_own_rates_open(now)
            return None
        bounds = self._claim_size.fit(ClaimBounds(wants, most, self._suspects(free)), free)
        self._soon = False
        return ClaimRequest(
            member=self._member,
            claimant=self._claimant,
            number=self._number,
            wants=bounds.wants,
            most=bounds.most,
            suspects=bounds.suspects,
            unknown=self._unknown.names(),
        )

    def repeated(self, request: ClaimRequest) -> ClaimRequest:
        """The same claim, made again. While claims are suspended it takes nothing new, and still learns what
        its number took."""
        if not self._suspended():
            return request
        return msgspec.structs.replace(request, most=0, wants=(), suspects=0)

    def answered(self, request: ClaimRequest, claim: Claim, *, took_s: float) -> None:
        """The answer has come, and the jobs of this claim are in the held table."""
        self._check_claim_soon()
        now = self._time()
        self._held_table.answered(request.number)
        self._number = request.number + 1
        self._refusals.reset()
        self._claim_size.came(claim.jobs, now)
        more = len(claim.jobs) >= request.most or self._claim_size.cut_short
        # A signal that came while the claim was on its way may have come too late for it.
        self._claim_at = 0.0 if more or self._soon else now + self._rest(claim.wait, now)
        self._slots.ahead.trip(took_s=took_s, since_last_s=now - self._answered_at)
        self._answered_at = now

    def refused(self, refused: Refused) -> None:
        """The claim was refused. For a retired claimant this is the end. Every other refusal passes by
        itself, mostly with the next heartbeat."""
        if isinstance(refused, ClaimantRetired):
            raise refused
        self._refused_until = self._time() + self._refusals.next_s()
        self._waits_for_heartbeat = True

    def _check_claim_soon(self) -> None:
        """If a signal came, claim now."""
        if self._take_claim_soon():
            self._claim_at = 0.0
            self._soon = True

    def _most(self) -> int:
        """How many jobs there is room for."""
        slots = self._slots
        return min(self._claim_size.room(slots.free, slots.room_ahead), self._held_table.free(), BATCH_LIMIT)

    def _suspended(self) -> bool:
        """Whether claims have to wait for something other than a free slot."""
        if self._slots.closed:
            return True
        if not self._slots.fresh(boot_ns()):
            self._waits_for_heartbeat = True
            return True
        return self._supervised and bool(self._stops.stuck)  # it is about to take this process with it

    def _suspects(self, free: int) -> int:
        """One suspect at a time, and none where no supervisor would see its crash. It starts at once: no
        suspect waits in the buffer, where the next claim would not see it."""
        if not self._takes_suspects or not free:
            return 0
        return int(not any(run.job.suspect for run in self._slots.active.values()))

    def _rest(self, wait: Span | None, now: float) -> float:
        """How long to wait after a claim that was not filled."""
        rest_s = min(jittered(self._poll_s), self._until_own_rates_open(now))
        return rest_s if wait is None else min(rest_s, max(wait / 1e6, AGAIN_S))

    def _until_own_rates_open(self, now: float) -> float:
        opens_at = self._claim_size.opens_at()
        return self._poll_s if opens_at is None else max(opens_at - now, AGAIN_S)
