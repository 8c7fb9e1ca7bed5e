"""Generations: when a cluster starts, and when it only goes on.

A generation of the cluster lasts as long as workers follow one another without a gap: each begins while one
of the generation lives. It ends when the last of them has signed off, or, if they were killed, when their
leases are over. The next worker then begins a new one: *the cluster has started*.

    workers      ----A----        --C--
                     ----B----
    generations  |<-- first ->|   |<-- second

The controller keeps the moment at which the generation began and the last moment at which it was seen alive
(`seen_at`), and judges from these and the list of members. While a killed worker's lease still runs, it
may send a heartbeat again: the answer is `None`, and the decision waits.
"""

from collections.abc import Sequence

from tidemill.model.member import Health, MemberRecord
from tidemill.model.time import Instant


def live_workers(members: Sequence[MemberRecord]) -> list[MemberRecord]:
    """Those that run jobs, as far as is known."""
    return [
        member
        for member in members
        if "worker" in member.info.roles and member.info.slots and member.health is not Health.GONE
    ]


def goes_on(workers: Sequence[MemberRecord], seen_at: Instant | None) -> bool | None:
    """Whether these workers belong to the generation that was last seen alive then; None: it cannot be told
    yet. (False: they have begun a new one.)"""
    survivors = [worker for worker in workers if seen_at is not None and worker.since <= seen_at]
    newcomers = [worker for worker in workers if seen_at is None or worker.since > seen_at]
    if not survivors:
        return False
    if not newcomers:
        return True
    met = max(worker.heartbeat_at for worker in survivors) >= min(worker.since for worker in newcomers)
    return True if met else None
