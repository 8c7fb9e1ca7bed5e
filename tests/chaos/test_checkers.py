"""Each checker fires on a history made by hand, and none on a sound one."""

from collections.abc import Callable

import pytest

from tests.chaos.app import EVERY_SECOND, INTERVAL
from tests.chaos.checkers import CHECKERS, judge
from tests.chaos.checkers.attempts import SOON_S
from tests.chaos.checkers.deaths import handler_of
from tests.chaos.checkers.rescue import rescues
from tests.chaos.history import merged
from tests.chaos.made import (
    OFFSET_S,
    ONE,
    OTHER,
    TICK,
    Made,
    asked,
    blamed,
    claimed,
    declared,
    elected,
    event,
    fired,
    heartbeat_answered,
    held,
    ran,
    settled,
    swept,
)
from tests.chaos.queues import FAIR, KEYED, VALVE
from tests.chaos.reading import SeenJob, SeenQueue
from tidemill.model.jobs.job import Failure
from tidemill.model.schedules.firing import MISSED_LIMIT
from tidemill.model.time import SECOND

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
    made.events += asked("read", 5.0, jobs=[ONE], answers=["dead", "0", "5"])


@spoils
def ends_as_its_code_says(made: Made) -> None:
    made.jobs[ONE].state = "cancelled"


@spoils
def deaths_are_handled(made: Made) -> None:
    """It has a handler that was not stored."""
    made.jobs[OTHER] = SeenJob(state="dead", task="doomed", on_dead="bury")


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
    for number in range(3):
        held(made, 2.0 + number / 10, 3.0, number, queue=KEYED, task="share", key="key2")


@spoils
def limits_in_force_hold(made: Made) -> None:
    made.events += declared(1.0, 2, began=1)
    for number in range(3):
        held(made, 2.0 + number / 10, 3.0, number, queue=VALVE, task="flow")


@spoils
def nothing_starts_while_paused(made: Made) -> None:
    made.events += [*declared(0.5, 2, began=1), *asked("pause", 1.0), *asked("resume", 9.0)]
    held(made, 2.0, 3.0, 1, queue=VALVE, task="flow")


@spoils
def options_are_those_last_said(made: Made) -> None:
    """A worker process of a member that started earlier came last, and what it says is in force."""
    made.events += [*declared(1.0, 3, began=20), *declared(2.0, 1, began=10)]
    made.valve = SeenQueue(declared=1, in_force=1)


@spoils
def no_key_starves(made: Made) -> None:
    for number in range(5):
        held(made, 3.0 + number / 10, 9.0, number, claimant="x", queue=FAIR, key="crowd")
    held(made, 5.0, 9.0, 5, claimant="x", queue=FAIR, key="tin")


@spoils
def unique_keys_are_unique(made: Made) -> None:
    made.jobs[OTHER] = SeenJob(state="completed", task="single")
    made.events += asked("enqueue", 1.5, jobs=[OTHER], text="single")
    for job, fence in ((ONE, 5), (OTHER, 6)):
        made.events += ran(2.2, job, fence, task="single", key="key1")
    made.events += [claimed(2.5, OTHER, 6, claimant="other"), *settled(2.8, OTHER, 6)]


@spoils
def attempts_are_counted(made: Made) -> None:
    made.jobs[ONE].attempts = 0


@spoils
def crashes_are_counted(made: Made) -> None:
    """Its process ended, and nobody had killed that."""
    made.events += [*ran(1.5, ONE, 4)[:1], *blamed(1.7, ONE, 4)]


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
    made.events += [heartbeat_answered(9.0), swept(11.0, "host:1")]


@spoils
def sweepers_are_steady(made: Made) -> None:
    made.events += [heartbeat_answered(9.5, "host:2", "bb"), swept(20.0, "host:1")]


@spoils
def terms_do_not_overlap(made: Made) -> None:
    made.events += [elected(10.0, 3), elected(20.0, 4)]
    made.events += asked("fire", 21.0, text="nightly", number=3, engine_at=1, answers=["late"])


@spoils
def one_job_per_tick(made: Made) -> None:
    for at in (10.0, 11.0):
        fired(at, made, 0)


@spoils
def intervals_never_overlap(made: Made) -> None:
    for number in range(2):
        begin = TICK + number * SECOND
        made.jobs[f"0{number + 2}" * 16] = SeenJob(
            state="completed", schedule=INTERVAL, created_at=begin, ended_at=begin + SECOND
        )


@spoils
def schedules_catch_up(made: Made) -> None:
    made.caught_up_s = None


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


def test_a_rescue_amid_other_faults_has_no_bound_but_it_comes() -> None:
    made = Made()
    lost = Failure(kind="lost", ended_at=int((OFFSET_S + 19.0) * 1e6))
    made.jobs[OTHER] = SeenJob(state="ready", settled_fence=9, failures=[lost])
    made.events += [
        event("start", 9.9, pid=99, jobs=[OTHER], fences=[8], task="nap"),
        event("fault", 10.0, text="kill server"),
        event("fault", 10.0, text="kill worker", pids=[99]),
    ]
    assert judge(made.case())["rescue_within_bounds"] == []
    made.jobs[OTHER] = SeenJob(state="ready")
    assert judge(made.case())["rescue_within_bounds"] == [f"{OTHER} never came back after its process died"]


def test_the_last_words_of_a_dying_process_came_through() -> None:
    """Its job waits for its next attempt behind many others: nothing was to be rescued."""
    made = Made()
    timeout = Failure(kind="timeout", attempt=1, ended_at=int((OFFSET_S + 10.1) * 1e6))
    made.jobs[OTHER] = SeenJob(state="dead", settled_fence=9, failures=[timeout])
    made.events += [
        event("start", 9.9, pid=99, jobs=[OTHER], fences=[8], task="overruns", number=1),
        event("fault", 10.0, text="kill supervisor", pids=[99]),
        claimed(30.0, OTHER, 9),
    ]
    assert judge(made.case())["rescue_within_bounds"] == []
    (only,) = rescues(made.case())
    assert round(only.after_s, 1) == 0.1


def test_the_end_of_an_earlier_run_is_no_rescue() -> None:
    made = Made()
    before = Failure(attempt=1, ended_at=int((OFFSET_S + 9.95) * 1e6))
    made.jobs[OTHER] = SeenJob(state="ready", failures=[before])
    made.events += [
        event("start", 9.97, pid=99, jobs=[OTHER], fences=[8], task="flaky", number=2),
        event("fault", 10.0, text="kill supervisor", pids=[99]),
    ]
    assert judge(made.case())["rescue_within_bounds"] == [f"{OTHER} never came back after its host died"]


def test_one_handler_for_each_death_and_none_without() -> None:
    made = Made()
    made.jobs[OTHER] = SeenJob(state="dead", task="doomed", on_dead="bury", replays=1)
    for replays in range(2):
        made.jobs[handler_of(OTHER, replays)] = SeenJob(state="completed", task="bury")
    assert judge(made.case())["deaths_are_handled"] == []
    made.jobs[OTHER].on_dead = ""
    assert judge(made.case())["deaths_are_handled"] == [f"{OTHER} (doomed) is dead and nothing handles it"]
    made.jobs[OTHER].state = "completed"
    (found,) = judge(made.case())["deaths_are_handled"]
    assert found == f"{handler_of(OTHER, 1)} handles a death that never was"


def test_a_sound_run_is_green() -> None:
    made = Made()
    steady = [heartbeat_answered(10 + number / 2, "host:2", "bb") for number in range(12)]
    made.events += [
        heartbeat_answered(9.0),
        *steady,
        swept(15.6, "host:1"),
        elected(10.0, 3),
        elected(20.0, 4),
    ]
    fired(11.0, made, 0)
    fired(12.0, made, 1, 2, 3)
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


def test_a_tick_that_was_missed_and_not_made_up_for() -> None:
    made = Made()
    fired(10.0, made, 0)
    fired(14.0, made, 3, first=1)
    assert (
        len(CHECKERS["one_job_per_tick"](made.case())) == 3
    )  # two without a job, and one under a wrong tick


def test_a_job_of_a_schedule_that_is_of_no_tick() -> None:
    made = Made()
    fired(10.0, made, 0)
    made.jobs[OTHER] = SeenJob(state="completed", schedule=EVERY_SECOND)
    assert len(CHECKERS["one_job_per_tick"](made.case())) == 1


def test_ticks_that_were_too_many_to_be_made_up_for() -> None:
    """The oldest are passed over; of those that follow, none."""
    made = Made()
    fired(10.0, made, 0)
    fired(200.0, made, *range(51, 51 + MISSED_LIMIT), first=1)
    assert not CHECKERS["one_job_per_tick"](made.case())
    fired(210.0, made, 53 + MISSED_LIMIT)
    assert len(CHECKERS["one_job_per_tick"](made.case())) == 2


def test_many_jobs_that_are_of_no_tick() -> None:
    """And they make up for nothing."""
    made = Made()
    fired(10.0, made, 0)
    fired(200.0, made, *(second + 0.5 for second in range(MISSED_LIMIT)), first=1)
    made.schedules[EVERY_SECOND].last_at = TICK + 3 * SECOND
    found = CHECKERS["one_job_per_tick"](made.case())
    assert len([one for one in found if "is of no tick" in one]) == MISSED_LIMIT
    assert len([one for one in found if "has no job" in one]) == 3


def late_in_its_term(stopped_at: float, *, by: str = "m0") -> list[str]:
    """What is said of a firing at 400 s in term 3, which began at 300 s, when term 4 had begun at 310 s. A
    member was stopped for two seconds."""
    made = Made()
    made.events += [
        elected(300.0, 3),
        elected(310.0, 4),
        event("fault", stopped_at, text="stop controller", member=by, until=2.0),
    ]
    made.events += asked("fire", 400.0, text="nightly", number=3, engine_at=1, answers=["late"])
    return CHECKERS["terms_do_not_overlap"](made.case())


def test_who_was_stopped_before_a_write_may_still_begin_it() -> None:
    assert not late_in_its_term(397.9)


@pytest.mark.parametrize(
    ("stopped_at", "by"),
    [
        pytest.param(1.0, "m0", id="long before its term"),
        pytest.param(305.0, "m0", id="in its term, and it went on long ago"),
        pytest.param(400.05, "m0", id="after the write"),
        pytest.param(397.9, "m1", id="another"),
    ],
)
def test_who_goes_on_in_an_old_term_is_not_excused_by_any_stop(stopped_at: float, by: str) -> None:
    assert late_in_its_term(stopped_at, by=by)


def test_a_stop_just_before_its_term_is_no_excuse() -> None:
    made = Made()
    made.events += [
        event("fault", 299.0, text="stop member", member="m0", until=0.5),
        elected(300.0, 3),
        elected(301.0, 4),
        *asked("fire", 301.5, text="nightly", number=3, engine_at=1, answers=["late"]),
    ]
    assert CHECKERS["terms_do_not_overlap"](made.case())


def poisoned() -> Made:
    """It crashed once, in the company of others, and then alone, which left no record."""
    made = Made()
    lost = Failure(kind="lost", ended_at=1)
    made.jobs[ONE] = SeenJob(state="cancelled", task="poison", attempts=0, failures=[lost], failure_count=1)
    made.events = [
        event for at, fence in ((2.0, 5), (3.0, 6)) for event in ran(at, ONE, fence, task="poison")[:1]
    ]
    return made


def test_a_start_of_a_poison_job_that_is_not_on_record() -> None:
    assert CHECKERS["crashes_are_counted"](poisoned().case())


def test_a_poison_job_that_was_stopped_in_the_moment_of_its_crash() -> None:
    """It was cancelled: what came of that run is `stopped`, which is no failure."""
    made = poisoned()
    made.events += settled(3.5, ONE, 6, outcome="stopped")
    assert not CHECKERS["crashes_are_counted"](made.case())


def whose_worker_ended(at: float, *, apart: bool = True) -> Made:
    made = poisoned()
    took = {"began": 2.8, "jobs": [ONE], "fences": [6], "claimant": "c", "phase": "ok"}
    made.events.append(event("claim", 2.9, pid=8 if apart else 7, **took))
    made.events += asked("retire", at, claimant="c")
    return made


@pytest.mark.parametrize("apart", [True, False])
def test_a_poison_job_in_a_process_of_its_own_whose_worker_ended(apart: bool) -> None:
    """It is given back as innocent of that. In the worker process itself, it is named."""
    made = whose_worker_ended(3.2, apart=apart)
    assert bool(CHECKERS["crashes_are_counted"](made.case())) is not apart


@pytest.mark.parametrize("at", [2.95, 3.0 + SOON_S + 0.1, 493.0])
def test_a_worker_that_ended_before_or_long_after_a_crash_is_no_excuse(at: float) -> None:
    assert CHECKERS["crashes_are_counted"](whose_worker_ended(at).case())


@pytest.mark.parametrize(("answer", "red"), [("applied", True), ("stale", False)])
def test_a_crash_that_was_told_of_is_on_record_whatever_ended_then(answer: str, red: bool) -> None:
    made = whose_worker_ended(3.2)
    made.events += settled(3.05, ONE, 6, outcome="crashed", answer=answer)
    assert bool(CHECKERS["crashes_are_counted"](made.case())) is red


def test_a_job_whose_process_was_killed_may_be_blamed() -> None:
    made = Made()
    made.events += [*ran(1.5, ONE, 4)[:1], *blamed(1.7, ONE, 4)]
    made.events.append(event("fault", 1.6, text="kill worker", pids=[7]))
    assert not CHECKERS["crashes_are_counted"](made.case())


def test_a_run_that_had_lost_its_job_before_it_died_is_no_rescue() -> None:
    """It was stopped past its lease; another run has completed the job, and then it was killed."""
    made = Made()
    made.events += [
        event("start", 1.2, pid=99, jobs=[ONE], fences=[4], task="nap"),
        event("fault", 10.0, text="kill worker", pids=[99]),
    ]
    assert rescues(made.case()) == []
