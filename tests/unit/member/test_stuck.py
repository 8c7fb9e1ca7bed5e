"""How long a supervisor puts up with jobs that do not stop."""

import pytest

from tidemill.worker.member.stuck import StuckWatch
from tidemill.worker.process.held_table import HeldRow

S = 1_000_000_000
ID = bytes(16)

pytestmark = pytest.mark.row("E4")


def held(fence: int, deadline_s: int = 0, started_ns: int = 1) -> HeldRow:
    return HeldRow(fence, ID, started_ns, deadline_s * S, 0)


class Watch:
    """A watch on a machine that is awake; `slept_s` is how long it was not."""

    def __init__(self) -> None:
        self.watch = StuckWatch(after_s=5, grace_s=10)
        self.slept_s = 0

    def check(self, rows: list[HeldRow], at_s: int) -> set[int]:
        return set(self.watch.check(rows, boot_ns=at_s * S, awake_ns=(at_s - self.slept_s) * S))


@pytest.fixture
def watch() -> Watch:
    return Watch()


def test_a_run_past_its_deadline_is_stuck_only_some_seconds_later(watch: Watch) -> None:
    rows = [held(1, 100)]
    assert [watch.check(rows, at_s) for at_s in (99, 100, 104)] == [set()] * 3
    assert not watch.watch.waiting
    assert watch.check(rows, 105) == {1}


def test_the_others_get_their_grace(watch: Watch) -> None:
    rows = [held(1, 100), held(2), held(3, started_ns=0)]
    assert [watch.check(rows, at_s) for at_s in (100, 105, 114)] == [set()] * 3
    assert watch.watch.waiting
    assert watch.check(rows, 115) == {1}


def test_the_grace_ends_when_the_others_are_gone(watch: Watch) -> None:
    assert [watch.check([held(1, 100), held(2)], at_s) for at_s in (100, 105)] == [set()] * 2
    assert watch.check([held(1, 100)], 106) == {1}


def test_a_run_that_ends_at_last_saves_its_process(watch: Watch) -> None:
    assert [watch.check([held(1, 100), held(2)], at_s) for at_s in (100, 105)] == [set()] * 2
    assert watch.check([held(2)], 110) == set()
    assert not watch.watch.waiting
    rows = [held(2), held(3, 110)]
    assert [watch.check(rows, at_s) for at_s in (111, 116, 125)] == [set()] * 3, "the grace begins anew"
    assert watch.check(rows, 126) == {3}


def test_what_has_no_deadline_or_runs_elsewhere_or_has_ended_is_never_stuck(watch: Watch) -> None:
    rows = [held(1), held(2, 100, started_ns=0)]
    assert [watch.check(rows, at_s) for at_s in (100, 1_000, 1_000_000)] == [set()] * 3


def test_after_a_suspend_everybody_gets_time_to_stop(watch: Watch) -> None:
    rows = [held(1, 100)]
    assert watch.check(rows, 90) == set()
    watch.slept_s = 3_600
    assert watch.check(rows, 3_700) == set(), "we have only just seen it"
    assert watch.check(rows, 3_704) == set()
    assert watch.check(rows, 3_705) == {1}


def test_a_suspend_does_not_use_up_the_grace(watch: Watch) -> None:
    rows = [held(1, 100), held(2)]
    assert [watch.check(rows, at_s) for at_s in (100, 105)] == [set()] * 2
    watch.slept_s = 3_600
    assert watch.check(rows, 3_706) == set()
    assert watch.check(rows, 3_715) == {1}
