"""The table that a worker process shares with its supervisor."""

import os
import subprocess
import sys

import pytest

from tidemill.engine.boot import boot_ns
from tidemill.model.ids import new_id
from tidemill.model.member import ClaimantHeartbeat
from tidemill.worker.process.held_table import NO_RETRY, HeldRow, HeldTable, HeldTableFull

CLAIMANT = bytes(16)


@pytest.fixture
def board() -> HeldTable:
    return HeldTable.create(3)


def test_an_empty_board_holds_nothing(board: HeldTable) -> None:
    assert board.heartbeat(CLAIMANT) == ClaimantHeartbeat(claimant=CLAIMANT, answered_through=0, held=())
    assert (board.rows(), board.free(), board.capacity) == ([], 3, 3)
    assert (board.heartbeat_ns, board.loop_silent_ns(1), board.finished) == (0, 0, 0)


def test_a_run_is_held_started_and_let_go(board: HeldTable) -> None:
    job_id = new_id()
    row = board.hold(job_id, 7)
    board.answered(1)
    assert board.rows() == [HeldRow(7, job_id, 0, 0, NO_RETRY)]
    board.start(row, started_ns=100, deadline_ns=200, retry_in=300)
    assert board.rows() == [HeldRow(7, job_id, 100, 200, 300)]
    assert board.heartbeat(CLAIMANT) == ClaimantHeartbeat(claimant=CLAIMANT, answered_through=1, held=(7,))
    board.ended(row)
    assert board.rows() == [HeldRow(7, job_id, 0, 200, 300)], "held until it is settled"
    board.let_go(row)
    assert (board.rows(), board.heartbeat(CLAIMANT).held, board.free()) == ([], (), 3)


def test_a_row_that_is_used_again_knows_nothing_of_the_former_run(board: HeldTable) -> None:
    row = board.hold(new_id(), 1)
    board.start(row, started_ns=100, deadline_ns=200, retry_in=300)
    board.let_go(row)
    job_id = new_id()
    assert board.hold(job_id, 2) == row
    assert board.rows() == [HeldRow(2, job_id, 0, 0, NO_RETRY)]


def test_no_more_than_its_capacity(board: HeldTable) -> None:
    rows = [board.hold(new_id(), fence) for fence in (1, 2, 3)]
    assert board.free() == 0
    with pytest.raises(HeldTableFull, match="3 rows"):
        board.hold(new_id(), 4)
    board.let_go(rows[1])
    board.hold(new_id(), 5)
    assert sorted(board.heartbeat(CLAIMANT).held) == [1, 3, 5]


def test_large_values_stay_exact(board: HeldTable) -> None:
    job_id, fence = b"\xff" * 16, 2**53 - 1
    row = board.hold(job_id, fence)
    board.start(row, started_ns=2**62, deadline_ns=2**62 + 1, retry_in=NO_RETRY)
    assert board.rows() == [HeldRow(fence, job_id, 2**62, 2**62 + 1, NO_RETRY)]


def test_the_supervisor_tells_of_its_heartbeats(board: HeldTable) -> None:
    before = boot_ns()
    board.heartbeat_answered(before)
    assert board.heartbeat_ns == before


def test_a_loop_is_silent_from_the_moment_at_which_it_owes_an_answer(board: HeldTable) -> None:
    board.loop_answers_by(100)
    assert [board.loop_silent_ns(now_ns) for now_ns in (50, 100, 105)] == [0, 0, 5]
    board.loop_answers_by(0)
    assert board.loop_silent_ns(105) == 0


def test_outcomes_are_counted(board: HeldTable) -> None:
    board.count(2)
    board.count(3)
    assert board.finished == 5


class LooksAway:
    """Cells in which a row is let go, and another run held in it, while somebody reads."""

    def __init__(self, board: HeldTable, row: int) -> None:
        self._cells, self._row, self._looks = board._cells, row, 0

    def __getitem__(self, at: int) -> int:
        self._looks += at == self._row
        return self._cells[at] + (self._looks > 1 and at == self._row)


def test_a_row_that_changes_under_the_reader_is_not_seen(
    board: HeldTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = board.hold(new_id(), 7)
    monkeypatch.setattr(board, "_cells", LooksAway(board, row))
    assert board.rows() == []


HOLDS_AND_DIES = """
import os, signal, sys
from tidemill.worker.process.held_table import HeldTable
board = HeldTable.attach(int(sys.argv[1]), 3)
row = board.hold(bytes(range(16)), 42)
board.answered(9)
board.start(row, started_ns=1, deadline_ns=2, retry_in=3)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_outlives_the_process_that_wrote_it(board: HeldTable) -> None:
    command = (sys.executable, "-c", HOLDS_AND_DIES, str(board.fd))
    assert subprocess.run(command, pass_fds=(board.fd,), check=False).returncode == -9
    assert board.rows() == [HeldRow(42, bytes(range(16)), 1, 2, 3)]
    assert board.heartbeat(CLAIMANT).answered_through == 9


def test_something_else_is_not_a_board(board: HeldTable) -> None:
    with pytest.raises(ValueError, match="not a board of 4 rows"):
        HeldTable.attach(board.fd, 4)


def test_closing_gives_everything_back() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        HeldTable.create(100).close()
    assert len(os.listdir("/proc/self/fd")) == before
