"""What silence means, and when a sweeper may believe it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.model.member import (
    HEARTBEAT,
    LEASE,
    Health,
    MemberInfo,
    health,
    may_sweep,
    steady_after_heartbeat,
)
from tidemill.model.time import SECOND, Span

MEMBER = MemberInfo(id=b"m" * 16, name="host:1")
QUICK = MemberInfo(id=b"q" * 16, name="host:2", heartbeat=SECOND // 5, lease=SECOND)
NOW = 1_800_000_000 * SECOND


@pytest.mark.parametrize(
    ("silence", "state"),
    [
        (0, Health.HEALTHY),
        (2 * HEARTBEAT, Health.HEALTHY),
        (2 * HEARTBEAT + 1, Health.LATE),
        (LEASE, Health.LATE),
        (LEASE + 1, Health.GONE),
    ],
)
def test_silence_makes_a_member_late_and_then_gone(silence: Span, state: Health) -> None:
    assert health(MEMBER, NOW - silence, NOW) is state


def test_each_member_has_its_own_lease() -> None:
    assert health(MEMBER, NOW - 2 * SECOND, NOW) is Health.HEALTHY
    assert health(QUICK, NOW - 2 * SECOND, NOW) is Health.GONE


def test_a_short_gap_keeps_the_wait_and_a_long_one_restarts_it() -> None:
    since = NOW - 60 * SECOND
    assert steady_after_heartbeat(MEMBER, NOW - 2 * HEARTBEAT, since, NOW) == since
    assert steady_after_heartbeat(MEMBER, NOW - 2 * HEARTBEAT - 1, since, NOW) == NOW


def test_a_fresh_process_waits_one_lease() -> None:
    assert not may_sweep(MEMBER, NOW, NOW, NOW)
    assert not may_sweep(MEMBER, NOW + LEASE - 1, NOW, NOW + LEASE - 1)
    assert may_sweep(MEMBER, NOW + LEASE, NOW, NOW + LEASE)


def test_a_sweeper_that_was_silent_itself_may_not_sweep() -> None:
    since = NOW - 60 * SECOND
    assert may_sweep(MEMBER, NOW - 2 * HEARTBEAT, since, NOW)
    assert not may_sweep(MEMBER, NOW - 2 * HEARTBEAT - 1, since, NOW)


@given(
    gaps=st.lists(st.integers(0, HEARTBEAT), max_size=40),
    outage=st.integers(2 * HEARTBEAT + 1, 100 * LEASE),
    after=st.lists(st.integers(0, 2 * HEARTBEAT), max_size=20),
)
def test_after_an_outage_nobody_sweeps_for_a_lease(gaps: list[Span], outage: Span, after: list[Span]) -> None:
    now = heartbeat_at = steady_since = NOW
    for gap in [*gaps, outage, *after]:
        now += gap
        steady_since = steady_after_heartbeat(MEMBER, heartbeat_at, steady_since, now)
        heartbeat_at = now
    assert steady_since == NOW + sum(gaps) + outage
    assert may_sweep(MEMBER, heartbeat_at, steady_since, now) is (sum(after) >= LEASE)
