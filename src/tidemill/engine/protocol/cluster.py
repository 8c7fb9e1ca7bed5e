"""The `leases`, `members` and `signals` facets: what makes many processes one cluster."""

from collections.abc import Sequence
from typing import Protocol

from tidemill.model.event import Signal
from tidemill.model.jobs.move import Moves
from tidemill.model.member import ClaimantHeartbeat, HeartbeatReply, MemberInfo, MemberRecord
from tidemill.model.stats.batch import StatsBatch
from tidemill.model.time import Instant, Span
from tidemill.model.view import (
    Lease,
)


class LeasesFacet(Protocol):
    """Named leases with a fence. (FIFO tickets, slots and windows come with user locks.)"""

    async def acquire(self, name: str, *, holder: str, ttl: Span, now: Instant | None = None) -> Lease | None:
        """Take the lease if it is free or the former holder's ttl is over: a fresh fence. The same
        holder asking again within its ttl keeps its fence and is prolonged (a repeat). None: another
        holds it."""
        ...

    async def renew(self, name: str, *, fence: int, ttl: Span, now: Instant | None = None) -> bool:
        """Prolong from now. False: the lease has another fence now, was released, or ran out."""
        ...

    async def release(self, name: str, *, fence: int, now: Instant | None = None) -> bool:
        """Give it up. False: not held under this fence (a repeat)."""
        ...

    async def list(self, *, now: Instant | None = None) -> "list[Lease]":
        """All leases in force, by name."""
        ...


class MembersFacet(Protocol):
    """For every process."""

    async def heartbeat(
        self,
        info: MemberInfo,
        claimants: Sequence[ClaimantHeartbeat] = (),
        *,
        statistics: StatsBatch | None = None,
        moves: Moves | None = None,
        now: Instant | None = None,
    ) -> HeartbeatReply:
        """Say that a member lives, and what its children hold; registers it if it is not known.

        For each claimant: a job running under it whose claim number is at most `answered_through`
        and whose fence is not in `held` is released with its `seq` (a claim or a release whose
        answer was lost on the way); a fence in `held` that is not running under it is reported as
        `lost`, also if it is a number that no fence can be: what a child has written must not silence
        its member. Claimants that are not mentioned are left alone. `stop_requests` lists the member's
        running jobs that were asked to stop. A repeat is just another heartbeat.

        `statistics`: what the member's children have seen since its last batch. It is added to the minute of
        this call (`inspect.stats`), in the same step, if its number is higher than that of the last batch
        that was applied for this member, as long as the member is known. Otherwise it changes nothing: it is
        a repeat, or came too late. Of a minute `TASKS_KEPT` tasks get rows of their own: those that come
        first, or (where batches are put together later, at the latest by `prune`) those with most jobs. What
        the others add goes to `OTHER_TASKS` of their queue. `BadInput` for rows that cannot be kept.

        A store may lose what it had acknowledged (restored from a backup, restarted without its file, a
        replica took over that lagged). An engine for which that happens in ordinary operation checks for it
        here (`rolled_back`): the member then publishes tasks, queues and schedules again. Fences go on
        growing.
        """
        ...

    async def leave(self, member: bytes, *, moves: Moves | None = None, now: Instant | None = None) -> int:
        """Sign off: release everything its claimants still hold (with `seq`, nothing is counted as
        lost), retire them, forget the member. Answers the number released; a repeat answers 0."""
        ...

    async def list(self, *, now: Instant | None = None) -> "list[MemberRecord]":
        """All members known, by name, with their health."""
        ...


class Subscription(Protocol):
    """A listener on some topics."""

    async def next(self, timeout: float | None = None) -> Signal | None:
        """The next signal, or None after `timeout` seconds. A burst on one topic may arrive as one.
        A signal with `ANY_TOPIC` means: something may have changed, poll."""
        ...

    async def close(self) -> None:
        """Stop listening; a pending `next` answers None."""
        ...


class SignalsFacet(Protocol):
    """Hints between processes: lossy, doubled, late, and never needed for correctness."""

    @property
    def room(self) -> int:
        """The longest text, in plain ASCII characters, that arrives whole; at least 4,000."""
        ...

    async def publish(self, topic: str, text: str = "") -> None:
        """Publish to every subscriber of the topic, in all processes. Never waits for a slow one."""
        ...

    async def subscribe(self, *topics: str) -> Subscription:
        """Listen. What is published after this returns is delivered, unless it is lost."""
        ...
