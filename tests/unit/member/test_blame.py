"""Who is blamed for the death of a worker process."""

import pytest

from tidemill.engine.protocol import BATCH_LIMIT
from tidemill.model.ids import new_id
from tidemill.model.jobs.run import Failed
from tidemill.worker.member.blame import Blame, assign_blame
from tidemill.worker.process.held_table import NO_RETRY, HeldRow

NOW_NS = 100_000_000_000


def a_run(fence: int, *, started_ns: int = 0, deadline_ns: int = 0, retry_in: int = NO_RETRY) -> HeldRow:
    return HeldRow(fence, new_id(), started_ns, deadline_ns, retry_in)


def blame(rows: list[HeldRow], *, innocent: bool = False, stuck: tuple[int, ...] = ()) -> Blame:
    return assign_blame(rows, now_ns=NOW_NS, how="it was killed", innocent=innocent, stuck=stuck)


def test_nothing_had_started() -> None:
    assert blame([]) == ([], [])
    assert blame([a_run(1), a_run(2)]) == ([], [])


@pytest.mark.row("A4")
def test_one_had_started_and_that_is_proof() -> None:
    waiting, running = a_run(1), a_run(2, started_ns=5)
    (lost_run,) = blame([waiting, running]).lost_runs
    assert (lost_run.id, lost_run.fence, lost_run.verdict) == (running.id, 2, "crash")
    assert lost_run.message == "it was killed"


def test_several_had_started_and_each_is_a_suspect() -> None:
    rows = [a_run(1, started_ns=5), a_run(2), a_run(3, started_ns=6)]
    lost_runs = blame(rows).lost_runs
    assert [(lost_run.fence, lost_run.verdict) for lost_run in lost_runs] == [(1, "suspect"), (3, "suspect")]
    assert "2 jobs" in lost_runs[0].message


def test_a_process_that_we_ended_blames_nobody() -> None:
    assert blame([a_run(1, started_ns=5)], innocent=True) == ([], [])


@pytest.mark.row("E4")
@pytest.mark.parametrize(("in_table", "retry_in"), [(NO_RETRY, None), (0, 0), (2_000_000, 2_000_000)])
def test_a_stuck_run_has_timed_out_and_the_others_are_innocent(in_table: int, retry_in: int | None) -> None:
    stuck = a_run(1, started_ns=NOW_NS - 7_500_000_000, deadline_ns=1, retry_in=in_table)
    settlements, lost_runs = blame([stuck, a_run(2, started_ns=5)], innocent=True, stuck=(1, 99))
    assert lost_runs == []
    (settlement,) = settlements
    assert (settlement.id, settlement.fence, settlement.ran) == (stuck.id, 1, 7_500_000)
    assert isinstance(settlement.outcome, Failed)
    assert settlement.outcome.retry_in == retry_in
    assert settlement.outcome.failure.kind == "timeout"
    assert "7.5 s" in settlement.outcome.failure.message


@pytest.mark.row("E4")
def test_a_stuck_run_that_ended_at_the_last_moment_has_not_timed_out() -> None:
    """Between the check that found it and the kill: its row is still held, and says that nothing runs."""
    over = a_run(1, started_ns=0, deadline_ns=1, retry_in=0)
    assert blame([over], innocent=True, stuck=(1,)) == ([], [])
    stuck = a_run(2, started_ns=5, deadline_ns=6)
    settlements, lost_runs = blame([over, stuck], innocent=True, stuck=(1, 2))
    assert ([settlement.fence for settlement in settlements], lost_runs) == ([2], [])


def test_more_than_one_call_can_name_are_released_without_a_mark() -> None:
    rows = [a_run(fence, started_ns=1) for fence in range(1, BATCH_LIMIT + 5)]
    assert len(blame(rows).lost_runs) == BATCH_LIMIT
