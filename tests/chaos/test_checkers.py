"""Each checker fires on a history made by hand, and none on a sound one."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.model.job import Failure
from tests.chaos.checkers import CHECKERS, judge
from tests.chaos.checkers.case import Case
from tests.chaos.history import Event, merged
from tests.chaos.reading import Reading, SeenJob
from tests.chaos.times import Times

ONE, OTHER = "01" * 16, "02" * 16
OFFSET_S = 1_000.0


def event(kind: str, at: float, **fields: Any) -> Event:
    return Event(**{"kind": kind, "at": at, "pid": 7, "who": "m0", **fields})


def asked(kind: str, at: float, phase: str = "ok", **fields: Any) -> list[Event]:
    """An operation that took a tenth of a second."""
    op = f"{kind}-{at}"
    answers = fields.pop("answers", [])
    return [
        event(kind, at, phase="invoked", op=op, **fields),
        event(kind, at + 0.1, phase=phase, op=op, answers=answers),
    ]


def claimed(at: float, job: str, fence: int, number: int = 1, claimant: str = "c") -> Event:
    return event(
        "claim", at, began=at - 0.1, jobs=[job], fences=[fence], claimant=claimant, number=number, phase="ok"
    )


def settled(
    at: float, job: str, fence: int, answer: str = "applied", outcome: str = "completed"
) -> list[Event]:
    return asked("settle", at, jobs=[job], fences=[fence], outcomes=[outcome], answers=[answer])


def ran(at: float, job: str, fence: int, **fields: Any) -> list[Event]:
    return [
        event("start", at, **{"jobs": [job], "fences": [fence], "task": "quick", **fields}),
        event("end", at + 0.1, **{"jobs": [job], "fences": [fence], "task": "quick", **fields}),
    ]


def beaten(at: float, name: str = "host:1", member: str = "aa") -> Event:
    engine_at = int((at + OFFSET_S) * 1e6)
    return event("beat", at, began=at - 0.01, phase="ok", text=name, member=member, engine_at=engine_at)


def swept(at: float, *gone: str) -> Event:
    return event("reclaim", at, began=at - 0.01, phase="ok", member="bb", answers=list(gone), number=1)


class Made:
    """A sound run of one job, to be spoiled."""

    def __init__(self) -> None:
        self.events = [
            *asked("enqueue", 1.0, jobs=[ONE], text="quick"),
            claimed(2.0, ONE, 5),
            *ran(2.1, ONE, 5),
            *settled(3.0, ONE, 5),
            *asked("look", 4.0, jobs=[ONE], answers=["completed", "0", "5"]),
        ]
        self.jobs = {ONE: SeenJob(state="completed", settled_fence=5, result="5")}
        self.listed = {"completed": [ONE]}
        self.counted = {"completed": 1, "ready": 0}
        self.finished = {"completed": 1}
        self.drained_s: float | None = 1.0

    def case(self) -> Case:
        reading = Reading(
            jobs=self.jobs,
            listed=self.listed,
            counted=self.counted,
            finished=self.finished,
            drained_s=self.drained_s,
            engine_offset_s=OFFSET_S,
        )
        return Case(merged(self.events), reading, Times(slack_s=1.0))


SPOILT: dict[str, Callable[[Made], None]] = {}


def spoils(spoil: Callable[[Made], None]) -> None:
    SPOILT[spoil.__name__] = spoil


@spoils
def nothing_acknowledged_is_lost(made: Made) -> None:
    made.events += asked("enqueue", 1.5, jobs=[OTHER])


@spoils
def refusals_change_nothing(made: Made) -> None:
    made.events += asked("enqueue", 1.5, phase="failed", jobs=[OTHER])
    made.jobs[OTHER] = SeenJob(state="completed")


@spoils
def nobody_runs_what_nobody_asked_for(made: Made) -> None:
    made.events += ran(2.0, OTHER, 6)


@spoils
def exactly_one_final_state(made: Made) -> None:
    made.listed = {"completed": [ONE], "dead": [ONE]}


@spoils
def final_states_stay(made: Made) -> None:
    made.events += asked("look", 5.0, jobs=[ONE], answers=["dead", "0", "5"])


@spoils
def ends_as_its_code_says(made: Made) -> None:
    made.jobs[ONE].state = "cancelled"


@spoils
def fences_grow(made: Made) -> None:
    made.events.append(claimed(3.5, ONE, 4, number=2))


@spoils
def stale_writes_change_nothing(made: Made) -> None:
    made.events.append(claimed(2.5, ONE, 6, claimant="other"))


@spoils
def settled_by_whom_it_says(made: Made) -> None:
    made.jobs[ONE].settled_fence = 9


@spoils
def one_holder_at_a_time(made: Made) -> None:
    made.events += [claimed(2.5, ONE, 6, claimant="other"), *settled(2.8, ONE, 6)]


@spoils
def limits_hold(made: Made) -> None:
    for job, fence in ((ONE, 5), (OTHER, 6)):
        made.events += ran(2.2, job, fence, task="alone", key="key1")
    made.events += [claimed(2.5, OTHER, 6, claimant="other"), *settled(2.8, OTHER, 6)]


@spoils
def attempts_are_counted(made: Made) -> None:
    made.jobs[ONE].attempts = 0


@spoils
def crashes_are_counted(made: Made) -> None:
    made.jobs[ONE].crashes = 1


@spoils
def replays_happen_once(made: Made) -> None:
    made.jobs[ONE].replays = 1


@spoils
def the_cancelled_never_start(made: Made) -> None:
    made.events += asked("cancel", 1.2, jobs=[ONE], answers=["cancelled"])


@spoils
def counts_equal_a_recount(made: Made) -> None:
    made.counted["ready"] = 1


@spoils
def the_window_counts_what_ended(made: Made) -> None:
    made.finished["completed"] = 2


@spoils
def nobody_living_is_reclaimed(made: Made) -> None:
    made.events += [beaten(9.0), swept(11.0, "host:1")]


@spoils
def sweepers_are_steady(made: Made) -> None:
    made.events += [beaten(9.5, "host:2", "bb"), swept(20.0, "host:1")]


def elected(at: float, term: int) -> Event:
    return event("acquire", at, began=at - 0.01, phase="ok", text="controller", number=term)


@spoils
def terms_do_not_overlap(made: Made) -> None:
    made.events += [elected(10.0, 3), elected(20.0, 4)]
    made.events += asked("fire", 21.0, text="nightly", number=3, engine_at=1, answers=["late"])


@spoils
def one_job_per_tick(made: Made) -> None:
    for at in (10.0, 11.0):
        made.events += asked("fire", at, text="nightly", engine_at=1, jobs=[ONE], answers=["fired"])


@spoils
def rescue_within_bounds(made: Made) -> None:
    """Its process died; it was on record again three seconds later, with a bound of one and one of slack."""
    lost = Failure(kind="lost", ended_at=int((OFFSET_S + 13.0) * 1e6))
    made.jobs[OTHER] = SeenJob(state="completed", settled_fence=9, result="9", failures=[lost])
    made.events += [
        event("start", 9.9, pid=99, jobs=[OTHER], fences=[8], task="nap"),
        event("fault", 10.0, text="kill worker", pids=[99]),
    ]


@spoils
def everything_drains(made: Made) -> None:
    made.drained_s = None


def test_a_sound_run_is_green() -> None:
    made = Made()
    steady = [beaten(10 + number / 2, "host:2", "bb") for number in range(12)]
    made.events += [beaten(9.0), *steady, swept(15.6, "host:1"), elected(10.0, 3), elected(20.0, 4)]
    for at, term, answer in ((11.0, 3, "fired"), (21.0, 4, "late")):
        made.events += asked("fire", at, text="x", number=term, engine_at=1, jobs=[ONE], answers=[answer])
    assert {name: found for name, found in judge(made.case()).items() if found} == {}


@pytest.mark.parametrize("name", CHECKERS)
def test_a_spoilt_run_is_red(name: str) -> None:
    made = Made()
    SPOILT[name](made)
    assert CHECKERS[name](made.case())


def test_an_operation_whose_process_died_is_unknown() -> None:
    invoked, _ = asked("enqueue", 1.0, jobs=[ONE])
    (operation,) = merged([invoked]).operations("enqueue")
    assert (operation.phase, operation.ended) == ("unknown", float("inf"))


def test_what_nobody_knows_may_be_there_or_not() -> None:
    made = Made()
    made.events += asked("enqueue", 1.5, phase="unknown", jobs=[OTHER])
    assert not any(judge(made.case()).values())
