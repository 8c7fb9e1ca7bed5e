"""When to claim, and how much: the rules of asking. `exchange` makes the trips.

There is always a next moment to ask: at once after a signal or when the last claim was filled, at the moment
that the engine named (`Claim.wait`: a due job, a rate that opens), and every `look_s` in any case, jittered,
because signals may be lost. An idle worker thus asks about once in `look_s`. Nothing is asked while there is
no room, while we drain, while a stuck job is about to take this process with it, or while our lease is not
fresh; nor for a moment after a refusal.

How much: the free slots, and whatever may wait in the buffer; but never more than the free slots of what
must not wait there (`wants`).
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
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.running.stopping import Stopping

WAITING_LOOK_S = 0.1
"""How often to look whether the lease is fresh again, or a stuck job has ended."""
AGAIN_S = 0.002
"""The pause before a claim that the engine wants repeated at once, though it gave nothing."""


class ClaimTiming:
    """The claims of one claimant, numbered. `looked`: whether somebody said since that there may be jobs."""

    def __init__(
        self,
        board: HeldTable,
        slots: Slots,
        stops: Stopping,
        wants: ClaimSize,
        *,
        looked: Callable[[], bool],
        member: bytes,
        claimant: bytes,
        look_s: float,
        takes_suspects: bool,
        supervised: bool,
    ) -> None:
        self._board = board
        self._slots = slots
        self._stops = stops
        self._wants = wants
        self._looked = looked
        self._member = member
        self._claimant = claimant
        self._look_s = look_s
        self._takes_suspects = takes_suspects
        self._supervised = supervised
        self._number = 1
        self._look_at = 0.0
        self._heard = False
        self._refused_until = 0.0
        self._refusals = Backoff()
        self._waits_for_heartbeat = True
        self._time = asyncio.get_running_loop().time
        self._answered_at = self._time()

    def heartbeat_answered(self) -> bool:
        """A heartbeat was answered: whether a claim waited for that."""
        waited = self._waits_for_heartbeat
        if waited:
            self._waits_for_heartbeat = False
            self._refused_until = self._look_at = 0.0
        return waited

    def patience(self) -> float | None:
        """How long until a claim should be made by itself; None: only when something happens."""
        self._hear()
        if self._suspended():
            return WAITING_LOOK_S
        if not self._most():
            return None
        return max(0.0, max(self._look_at, self._refused_until) - self._time())

    def request(self, *, anyway: bool) -> ClaimRequest | None:
        """The claim to make now. `anyway`: there is a trip to the engine in any case, so that asking
        costs little, and permits that its outcomes free are seen."""
        self._hear()
        now, most, free = self._time(), self._most(), self._slots.free
        due = now >= self._refused_until and (anyway or now >= self._look_at)
        if not due or not most or self._suspended():
            return None
        wants = self._wants.ask(free, self._slots.of_queue, now)
        if not wants:
            self._look_at = now + self._until_own_rates_open(now)
            return None
        ask = self._wants.fit(ClaimBounds(wants, most, self._suspects(free)), free)
        self._heard = False
        return ClaimRequest(
            member=self._member,
            claimant=self._claimant,
            number=self._number,
            wants=ask.wants,
            most=ask.most,
            suspects=ask.suspects,
        )

    def repeated(self, request: ClaimRequest) -> ClaimRequest:
        """The same claim, made again: it takes nothing new where it should not, and still learns what
        its number took."""
        if not self._suspended():
            return request
        return msgspec.structs.replace(request, most=0, wants=(), suspects=0)

    def answered(self, request: ClaimRequest, claim: Claim, *, took_s: float) -> None:
        """The jobs of this claim are on the board."""
        self._hear()
        now = self._time()
        self._board.answered(request.number)
        self._number = request.number + 1
        self._refusals.reset()
        self._wants.came(claim.jobs, now)
        more = len(claim.jobs) >= request.most or self._wants.cut_short
        # What was heard while the claim was on its way may have come too late for it.
        self._look_at = 0.0 if more or self._heard else now + self._rest(claim.wait, now)
        self._slots.ahead.trip(took_s=took_s, since_last_s=now - self._answered_at)
        self._answered_at = now

    def refused(self, refused: Refused) -> None:
        """Not granted. For a retired claimant this is the end; everything else passes by itself, most
        of it with the next heartbeat."""
        if isinstance(refused, ClaimantRetired):
            raise refused
        self._refused_until = self._time() + self._refusals.next_s()
        self._waits_for_heartbeat = True

    def _hear(self) -> None:
        """There may be something to claim, if somebody said so."""
        if self._looked():
            self._look_at = 0.0
            self._heard = True

    def _most(self) -> int:
        """How many jobs there is room for."""
        slots = self._slots
        return min(self._wants.room(slots.free, slots.room_ahead), self._board.free(), BATCH_LIMIT)

    def _suspended(self) -> bool:
        """Whether claims have to wait for something other than a free slot."""
        if self._slots.closed:
            return True
        if not self._slots.fresh(boot_ns()):
            self._waits_for_heartbeat = True
            return True
        return self._supervised and bool(self._stops.stuck)  # it is about to take this process with it

    def _suspects(self, free: int) -> int:
        """One at a time, and none where its crash could not be seen. It starts at once: none ever waits in
        the buffer, where the next claim would not see it."""
        if not self._takes_suspects or not free:
            return 0
        return int(not any(run.job.suspect for run in self._slots.active.values()))

    def _rest(self, wait: Span | None, now: float) -> float:
        """How long nothing new is to be expected."""
        rest_s = min(jittered(self._look_s), self._until_own_rates_open(now))
        return rest_s if wait is None else min(rest_s, max(wait / 1e6, AGAIN_S))

    def _until_own_rates_open(self, now: float) -> float:
        opens_at = self._wants.opens_at()
        return self._look_s if opens_at is None else max(opens_at - now, AGAIN_S)
