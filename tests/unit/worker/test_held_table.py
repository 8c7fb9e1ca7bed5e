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
def held_table() -> HeldTable:
    return HeldTable.create(3)


def test_an_empty_table_holds_nothing(held_table: HeldTable) -> None:
    assert held_table.heartbeat(CLAIMANT) == ClaimantHeartbeat(claimant=CLAIMANT, answered_through=0, held=())
    assert (held_table.rows(), held_table.free(), held_table.capacity) == ([], 3, 3)
    assert (held_table.heartbeat_ns, held_table.loop_silent_ns(1), held_table.finished) == (0, 0, 0)


def test_a_run_is_held_started_and_let_go(held_table: HeldTable) -> None:
    job_id = new_id()
    row = held_table.hold(job_id, 7)
    held_table.answered(1)
    assert held_table.rows() == [HeldRow(7, job_id, 0, 0, NO_RETRY)]
    held_table.start(row, started_ns=100, deadline_ns=200, retry_in=300)
    assert held_table.rows() == [HeldRow(7, job_id, 100, 200, 300)]
    assert held_table.heartbeat(CLAIMANT) == ClaimantHeartbeat(
        claimant=CLAIMANT, answered_through=1, held=(7,)
    )
    held_table.ended(row)
    assert held_table.rows() == [HeldRow(7, job_id, 0, 200, 300)], "held until it is settled"
    held_table.let_go(row)
    assert (held_table.rows(), held_table.heartbeat(CLAIMANT).held, held_table.free()) == ([], (), 3)


def test_a_row_that_is_used_again_knows_nothing_of_the_former_run(held_table: HeldTable) -> None:
    row = held_table.hold(new_id(), 1)
    held_table.start(row, started_ns=100, deadline_ns=200, retry_in=300)
    held_table.let_go(row)
    job_id = new_id()
    assert held_table.hold(job_id, 2) == row
    assert held_table.rows() == [HeldRow(2, job_id, 0, 0, NO_RETRY)]


def test_no_more_than_its_capacity(held_table: HeldTable) -> None:
    rows = [held_table.hold(new_id(), fence) for fence in (1, 2, 3)]
    assert held_table.free() == 0
    with pytest.raises(HeldTableFull, match="3 rows"):
        held_table.hold(new_id(), 4)
    held_table.let_go(rows[1])
    held_table.hold(new_id(), 5)
    assert sorted(held_table.heartbeat(CLAIMANT).held) == [1, 3, 5]


def test_large_values_stay_exact(held_table: HeldTable) -> None:
    job_id, fence = b"\xff" * 16, 2**53 - 1
    row = held_table.hold(job_id, fence)
    held_table.start(row, started_ns=2**62, deadline_ns=2**62 + 1, retry_in=NO_RETRY)
    assert held_table.rows() == [HeldRow(fence, job_id, 2**62, 2**62 + 1, NO_RETRY)]


def test_the_supervisor_writes_when_its_heartbeat_was_answered(held_table: HeldTable) -> None:
    before = boot_ns()
    held_table.heartbeat_answered(before)
    assert held_table.heartbeat_ns == before


def test_a_loop_is_silent_from_the_moment_at_which_it_owes_an_answer(held_table: HeldTable) -> None:
    held_table.loop_answers_by(100)
    assert [held_table.loop_silent_ns(now_ns) for now_ns in (50, 100, 105)] == [0, 0, 5]
    held_table.loop_answers_by(0)
    assert held_table.loop_silent_ns(105) == 0


def test_outcomes_are_counted(held_table: HeldTable) -> None:
    held_table.count(2)
    held_table.count(3)
    assert held_table.finished == 5


class ChangesOnRead:
    """Cells in which a row is let go, and another run held in it, while somebody reads."""

    def __init__(self, held_table: HeldTable, row: int) -> None:
        self._cells, self._row, self._reads = held_table._cells, row, 0

    def __getitem__(self, at: int) -> int:
        self._reads += at == self._row
        return self._cells[at] + (self._reads > 1 and at == self._row)


def test_a_row_that_changes_under_the_reader_is_not_seen(
    held_table: HeldTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = held_table.hold(new_id(), 7)
    monkeypatch.setattr(held_table, "_cells", ChangesOnRead(held_table, row))
    assert held_table.rows() == []


HOLDS_AND_DIES = """
import os, signal, sys
from tidemill.worker.process.held_table import HeldTable
held_table = HeldTable.attach(int(sys.argv[1]), 3)
row = held_table.hold(bytes(range(16)), 42)
held_table.answered(9)
held_table.start(row, started_ns=1, deadline_ns=2, retry_in=3)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_it_outlives_the_process_that_wrote_it(held_table: HeldTable) -> None:
    command = (sys.executable, "-c", HOLDS_AND_DIES, str(held_table.fd))
    assert subprocess.run(command, pass_fds=(held_table.fd,), check=False).returncode == -9
    assert held_table.rows() == [HeldRow(42, bytes(range(16)), 1, 2, 3)]
    assert held_table.heartbeat(CLAIMANT).answered_through == 9


def test_something_else_is_not_a_held_table(held_table: HeldTable) -> None:
    with pytest.raises(ValueError, match="not a held table of 4 rows"):
        HeldTable.attach(held_table.fd, 4)


def test_closing_frees_everything() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        HeldTable.create(100).close()
    assert len(os.listdir("/proc/self/fd")) == before
