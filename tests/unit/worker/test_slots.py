"""Which runs begin, which wait, and which are released."""

from collections.abc import Iterator

import pytest

from tests.unit.worker.builders import a_run
from tidemill.engine.boot import boot_ns
from tidemill.worker.claiming.slots import Slots
from tidemill.worker.process.held_table import HeldTable
from tidemill.worker.running.run import Run

HOUR_NS = 3_600 * 10**9


class WatchedSlots:
    """Slots whose begun and released runs are kept in lists."""

    def __init__(self, count: int) -> None:
        self.begun: list[int] = []
        self.released: list[int] = []
        self.ends_at_once: set[int] = set()
        self.held_table = HeldTable.create(8)
        self.held_table.heartbeat_answered(boot_ns() + HOUR_NS)
        self.slots = Slots(
            count,
            self.held_table,
            10.0,
            {},
            begin=self._begin,
            release=lambda run, _: self.released.append(run.fence),
        )

    def _begin(self, run: Run) -> None:
        self.begun.append(run.fence)
        if run.fence in self.ends_at_once:
            self.slots.leave(run, boot_ns())

    def admit(self, *runs: Run) -> None:
        self.slots.admit(list(runs))

    def end(self, fence: int) -> None:
        self.slots.leave(self.slots.active[fence], boot_ns())


@pytest.fixture
def watched() -> Iterator[WatchedSlots]:
    watched = WatchedSlots(2)
    yield watched
    watched.held_table.close()


def test_slots_are_filled_and_the_rest_waits(watched: WatchedSlots) -> None:
    watched.admit(*(a_run(fence) for fence in range(1, 5)))
    assert (watched.begun, len(watched.slots.buffer)) == ([1, 2], 2)
    assert (watched.slots.free, watched.slots.room_ahead) == (0, 0)
    watched.end(2)
    assert watched.begun == [1, 2, 3]
    watched.end(1)
    watched.end(3)
    watched.end(4)
    assert (watched.begun, watched.slots.free) == ([1, 2, 3, 4], 2)


def test_room_ahead_is_what_may_still_wait(watched: WatchedSlots) -> None:
    watched.slots.ahead.limit = 2
    assert (watched.slots.free, watched.slots.room_ahead) == (2, 2)
    watched.admit(*(a_run(fence) for fence in range(1, 4)))
    assert (watched.slots.free, watched.slots.room_ahead) == (0, 1)


def test_what_cannot_wait_takes_the_slots_and_the_rest_of_it_is_released(watched: WatchedSlots) -> None:
    watched.admit(a_run(1), a_run(2, limited=True), a_run(3, limited=True), a_run(4, limited=True))
    assert (watched.begun, watched.released) == ([2, 3], [4])
    assert len(watched.slots.buffer) == 1


def test_a_suspect_never_waits(watched: WatchedSlots) -> None:
    watched.admit(a_run(1), a_run(2), a_run(3), a_run(4, suspect=True))
    assert watched.begun == [4, 1]
    assert (len(watched.slots.buffer), watched.released) == (2, [])
    watched.admit(a_run(5, suspect=True))
    assert (len(watched.slots.buffer), watched.released) == (2, [5])


def test_a_suspect_is_released_rather_than_a_permit(watched: WatchedSlots) -> None:
    watched.admit(a_run(1, suspect=True), a_run(2, limited=True), a_run(3, limited=True))
    assert (watched.begun, watched.released) == ([2, 3], [1])


def test_runs_that_end_as_they_begin_make_room_for_all_that_wait(watched: WatchedSlots) -> None:
    watched.ends_at_once = set(range(1, 5_000))
    watched.admit(*(a_run(fence) for fence in range(1, 3_000)))
    assert len(watched.begun) == 2_999
    assert watched.slots.free == 2


def test_without_a_fresh_lease_nothing_begins(watched: WatchedSlots) -> None:
    watched.held_table.heartbeat_answered(boot_ns() - HOUR_NS)
    watched.admit(a_run(1), a_run(2, limited=True))
    assert (watched.begun, watched.released) == ([], [2])
    watched.slots.refill(boot_ns())
    assert watched.begun == []
    watched.held_table.heartbeat_answered(boot_ns())
    watched.slots.refill(boot_ns())
    assert watched.begun == [1]


def test_once_closed_everything_is_released(watched: WatchedSlots) -> None:
    watched.admit(*(a_run(fence) for fence in range(1, 5)))
    watched.slots.close()
    assert watched.released == [3, 4]
    watched.admit(a_run(5), a_run(6, limited=True))
    watched.end(1)
    assert watched.released == [3, 4, 5, 6]
    assert watched.begun == [1, 2]


def test_once_shut_nothing_begins_and_nothing_is_released(watched: WatchedSlots) -> None:
    watched.admit(*(a_run(fence) for fence in range(1, 5)))
    watched.slots.shut()
    watched.end(1)
    watched.end(2)
    assert (watched.begun, watched.released) == ([1, 2], [])


def test_the_last_to_leave_is_called(watched: WatchedSlots) -> None:
    called: list[str] = []
    watched.admit(a_run(1), a_run(2))
    watched.slots.shut()
    watched.slots.when_empty(lambda: called.append("later"))
    watched.end(1)
    assert called == []
    watched.end(2)
    assert called == ["later"]
    watched.slots.when_empty(lambda: called.append("now"))
    assert called == ["later", "now"]


def test_it_counts_by_queue(watched: WatchedSlots) -> None:
    watched.admit(a_run(1, queue="a"), a_run(2, queue="b"), a_run(3, queue="a"))
    assert (watched.slots.of_queue("a"), watched.slots.of_queue("b")) == (2, 1)
