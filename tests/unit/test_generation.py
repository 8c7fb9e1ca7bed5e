"""When a cluster starts, and when it only goes on."""

import pytest

from tidemill.model.member import Health, MemberInfo, MemberRecord
from tidemill.model.schedules.generation import goes_on, live_workers


def a_worker(since: int, heartbeat_at: int, health: Health = Health.HEALTHY, **info: object) -> MemberRecord:
    made = MemberInfo(**{"id": bytes(16), "name": "h:1", "slots": 10, **info})  # type: ignore[arg-type]
    return MemberRecord(
        info=made, since=since, heartbeat_at=heartbeat_at, steady_since=since, health=health, running=0
    )


@pytest.mark.row("D4")
@pytest.mark.parametrize(
    ("workers", "seen_at", "expected"),
    [
        ([a_worker(10, 10)], None, False),  # the first ever
        ([a_worker(10, 50)], 40, True),  # nothing changed
        ([a_worker(10, 50), a_worker(45, 50)], 40, True),  # one has joined
        ([a_worker(45, 50)], 40, False),  # all former ones have signed off, or their leases are over
        ([a_worker(10, 41), a_worker(45, 50)], 40, None),  # was the former one killed? its lease still runs
        ([a_worker(10, 46), a_worker(45, 50)], 40, True),  # no: it has sent a heartbeat since
    ],
)
def test_workers_that_follow_one_another_are_one_generation(
    workers: list[MemberRecord], seen_at: int | None, expected: bool | None
) -> None:
    assert goes_on(workers, seen_at) is expected


def test_only_live_workers_count() -> None:
    worker = a_worker(1, 2)
    others = [
        a_worker(1, 2, health=Health.GONE),
        a_worker(1, 2, roles=("controller",)),
        a_worker(1, 2, slots=0),
    ]
    assert live_workers([worker, *others]) == [worker]
