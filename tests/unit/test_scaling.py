"""How many processes a worker wants: never swinging at constant load, quick when jobs wait."""

import random

import pytest

from tidemill.model.errors import BadInput
from tidemill.model.scaling.process_range import ProcessRange
from tidemill.model.scaling.processes import RecycleBounds, Scaling, WorkerLoad, processes_wanted

WAIT_S, CALM_S = 2.0, 30.0
MEBIBYTE = 1 << 20


def a_load(processes: int = 1, **more: object) -> WorkerLoad:
    usual = {"slots": 1, "occupied": 1.0, "startable": 0, "run_s": 0.05}
    return WorkerLoad(**{"processes": processes, **usual, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("load", "wanted"),
    [
        (a_load(1, startable=1_000), 25),  # 50 s of work, to begin within 2 s
        (a_load(1, startable=30), 1),  # begins within 1.5 s anyway
        (a_load(1, startable=3, run_s=None), 4),  # nothing known: a slot for each
        (a_load(1, startable=3, run_s=600.0), 4),  # never more slots than jobs
        (a_load(2, slots=10, startable=5, run_s=600.0), 3),  # a slot for each, ten a process
        (a_load(2, startable=1_000, occupied=0.8), 2),  # a free slot beside a waiting job: a limit
        (a_load(4, occupied=0.0), 0),
        (a_load(4, occupied=0.5), 3),  # two processes' work: 67% of three
        (a_load(3, occupied=2 / 3), 3),
        (a_load(10, occupied=0.7), 10),
    ],
)
def test_what_a_load_wants(load: WorkerLoad, wanted: int) -> None:
    assert processes_wanted(load, WAIT_S) == wanted


def test_it_grows_when_two_polls_want_more_and_to_what_both_want() -> None:
    scaling = Scaling(ProcessRange(1, 8), wait_s=WAIT_S, calm_s=CALM_S)
    assert scaling.decide(a_load(1, startable=1_000), 0.0) == 1
    assert scaling.decide(a_load(1, startable=100), 1.0) == 3
    assert scaling.decide(a_load(3, startable=1_000), 2.0) == 3, "the wish before was three"
    assert scaling.decide(a_load(3, startable=1_000), 3.0) == 8, "and never more than allowed"


def test_it_shrinks_to_the_highest_wish_of_the_calm_time_and_not_before() -> None:
    scaling = Scaling(ProcessRange(1, 8), wait_s=WAIT_S, calm_s=CALM_S)
    for second in range(30):
        occupied = 0.5 if second == 10 else 0.0
        assert scaling.decide(a_load(4, occupied=occupied), float(second)) == 4
    assert scaling.decide(a_load(4, occupied=0.0), 30.0) == 3
    for second in range(31, 41):
        assert scaling.decide(a_load(3, occupied=0.0), float(second)) == 3
    assert scaling.decide(a_load(3, occupied=0.0), 41.0) == 1, "the least"


def test_what_was_seen_before_a_failed_poll_does_not_count() -> None:
    scaling = Scaling(ProcessRange(1, 8), wait_s=WAIT_S, calm_s=CALM_S)
    for second in range(30):
        scaling.decide(a_load(4, occupied=0.0), float(second))
    scaling.forget()
    assert scaling.decide(a_load(4, occupied=0.0), 30.0) == 4
    assert scaling.decide(a_load(4, occupied=0.0), 60.0) == 1


class Simulated:
    """A worker with processes of one slot, and jobs that arrive at random, second by second."""

    def __init__(self, rate: float, run_s: float, seed: int) -> None:
        self._random = random.Random(seed)
        self._rate, self._run_s = rate, run_s
        self._scaling = Scaling(ProcessRange(1, 16), wait_s=WAIT_S, calm_s=CALM_S)
        self._waiting = 0.0
        self.processes, self.now_s = 1, 0.0
        self.changes: list[tuple[float, int]] = []

    def second(self) -> None:
        """One second of work, then a poll."""
        arrived = sum(self._random.random() < self._rate / 1_000 for _ in range(1_000))
        self._waiting += arrived
        capacity = self.processes / self._run_s
        done = min(self._waiting, capacity)
        self._waiting -= done
        load = WorkerLoad(self.processes, 1, min(1.0, done / capacity), int(self._waiting), self._run_s)
        self.now_s += 1.0
        if (number := self._scaling.decide(load, self.now_s)) != self.processes:
            self.processes = number
            self.changes.append((self.now_s, number))


@pytest.mark.row("E6")
@pytest.mark.parametrize("needed", [0.3, 0.7, 1.0, 1.5, 2.0, 2.5, 3.0, 3.4, 5.0, 7.7, 10.0])
@pytest.mark.parametrize("seed", range(5))
def test_at_constant_load_the_number_settles_and_stays(needed: float, seed: int) -> None:
    """Ten minutes of random arrivals that keep this many processes busy, after two minutes to settle."""
    run_s = 0.05
    worker = Simulated(needed / run_s, run_s, seed)
    for _ in range(720):
        worker.second()
    settled = [number for at_s, number in worker.changes if at_s > 120]
    assert len(settled) <= 2, f"it swings: {worker.changes}"
    assert needed < worker.processes <= needed / 0.7 + 2


@pytest.mark.parametrize(
    ("written", "means"), [("4", (4, 4)), (4, (4, 4)), ("1..4", (1, 4)), (" 2 .. 2 ", (2, 2))]
)
def test_a_range_of_processes_is_read(written: object, means: tuple[int, int]) -> None:
    assert ProcessRange.parse(written) == means


@pytest.mark.parametrize(
    "written",
    [
        "4..1",
        "0..",
        "..4",
        "x",
        "",
        "0",
        "0..4",
        "1...4",
        "1-4",
        "1..1001",
        "-1",
        0,
        1.5,
        True,
        None,
        "1..4..8",
    ],
)
def test_what_is_no_range_is_refused_with_the_forms(written: object) -> None:
    with pytest.raises(BadInput, match=r"a whole number or MIN\.\.MAX.*such as 4 or 1\.\.4"):
        ProcessRange.parse(written)


def test_why_a_process_is_due_to_be_replaced() -> None:
    bounds = RecycleBounds(jobs=1_000, mebibytes=512)
    assert bounds.reason(finished=999, memory=512 * MEBIBYTE) == ""
    assert bounds.reason(finished=1_000, memory=None) == "it has finished 1,000 jobs"
    assert bounds.reason(finished=0, memory=600 * MEBIBYTE) == "it has 600 MiB of memory, more than 512"
    assert not RecycleBounds()
    assert RecycleBounds().reason(finished=10**9, memory=1 << 40) == ""
