"""What is known of the engine's clock from answers that name its time."""

from hypothesis import given
from hypothesis import strategies as st

from tidemill.worker.claiming.engine_clock import DRIFT, EngineClock

AHEAD_NS = 1_700_000_000_000_000_123
MS = 1_000_000


def moment(at_ns: int) -> int:
    """What the engine names at this moment of ours."""
    return (at_ns + AHEAD_NS) // 1_000


def test_one_answer_bounds_it_by_its_trip() -> None:
    clock = EngineClock()
    clock.learn(moment(15 * MS), 10 * MS, 20 * MS)
    begins = clock.about_ns(moment(100 * MS))
    assert abs(begins - 100 * MS) < 1_000
    assert 95 * MS - 2_000 <= clock.surely_before_ns(moment(100 * MS)) <= 95 * MS


def test_the_quickest_ways_there_and_back_decide() -> None:
    clock = EngineClock()
    clock.learn(moment(11 * MS), 10 * MS, 40 * MS)
    clock.learn(moment(79 * MS), 50 * MS, 80 * MS)
    assert 98 * MS < clock.surely_before_ns(moment(100 * MS)) <= 100 * MS
    assert abs(clock.about_ns(moment(100 * MS)) - 100 * MS) <= MS


@given(
    trips=st.lists(
        st.tuples(st.integers(0, 10_000), st.integers(0, 50_000), st.integers(0, 50_000)), min_size=1
    )
)
def test_the_bound_always_holds(trips: list[tuple[int, int, int]]) -> None:
    """Waits between trips, ways there and ways back, in microseconds."""
    clock, now_ns = EngineClock(), 0
    for wait, there, back in trips:
        sent_ns = now_ns + 1_000 * wait
        named_ns = sent_ns + 1_000 * there
        now_ns = named_ns + 1_000 * back
        clock.learn(moment(named_ns), sent_ns, now_ns)
        assert clock.surely_before_ns(moment(now_ns)) <= now_ns


def test_old_bounds_widen_with_the_drift_of_clocks() -> None:
    clock = EngineClock()
    clock.learn(moment(0), 0, 0)
    later = 60_000 * MS
    clock.learn(moment(later), later - 900 * MS, later + 900 * MS)
    known = later - clock.surely_before_ns(moment(later))
    assert later // DRIFT <= known <= 2 * later // DRIFT


def test_a_clock_that_was_set_counts_alone() -> None:
    clock = EngineClock()
    clock.learn(moment(10 * MS), 9 * MS, 11 * MS)
    clock.learn(moment(20 * MS) + 3_000_000, 19 * MS, 21 * MS)
    assert abs(clock.about_ns(moment(30 * MS) + 3_000_000) - 30 * MS) < 2 * MS
