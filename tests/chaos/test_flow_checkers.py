"""The checkers of limits, options and turns: what they find, and what is no fault."""

from typing import Any

import pytest

from tests.chaos.checkers import CHECKERS
from tests.chaos.made import ONE, Made, asked, claimed, declared, event, held, moment, settled
from tests.chaos.queues import CROWD, FAIR, KEYED, NARROW, VALVE
from tests.chaos.reading import SeenQueue
from tidemill.model.time import SECOND


def together(count: int, **job: Any) -> list[str]:
    """What is said of so many jobs at once."""
    made = Made()
    for number in range(count):
        held(made, 2.0 + number / 10, 9.0, number, **job)
    return CHECKERS["limits_hold"](made.case())


@pytest.mark.parametrize(
    ("most", "job"),
    [
        pytest.param(3, {"queue": NARROW, "task": "squeeze"}, id="a queue's"),
        pytest.param(2, {"queue": NARROW, "task": "nip"}, id="a task's"),
        pytest.param(2, {"queue": KEYED, "task": "share", "key": "key2"}, id="a key's"),
        pytest.param(1, {"queue": KEYED, "task": "share", "key": "key0"}, id="a key's own, lower"),
        pytest.param(4, {"queue": KEYED, "task": "share", "key": "key1"}, id="a key's own, higher"),
    ],
)
def test_each_limit_is_what_the_app_declares(most: int, job: dict[str, Any]) -> None:
    assert together(most, **job) == []
    assert len(together(most + 1, **job)) == 1


def test_jobs_one_after_the_other_are_within_any_limit() -> None:
    made = Made()
    for number in range(5):
        held(made, 2.0 + number, 2.8 + number, number, queue=KEYED, task="share", key="key0")
    assert CHECKERS["limits_hold"](made.case()) == []


def of_valve(made: Made, *moments: tuple[float, float], first: int = 0) -> None:
    for number, (since, until) in enumerate(moments, first):
        held(made, since, until, number, queue=VALVE, task="flow")


def test_what_started_before_a_limit_was_lowered_runs_on() -> None:
    made = Made()
    made.events += [*declared(1.0, 3, began=1), *asked("override", 4.0, text="1")]
    of_valve(made, (2.0, 9.0), (2.1, 9.0), (2.2, 9.0))
    assert CHECKERS["limits_in_force_hold"](made.case()) == []
    held(made, 8.0, 9.5, 7, queue=VALVE, task="flow")
    (found,) = CHECKERS["limits_in_force_hold"](made.case())
    assert found.startswith("valve: 4 at once instead of 1")


def test_an_override_counts_over_what_is_declared_until_it_is_reset() -> None:
    made = Made()
    made.events += [*declared(1.0, 1, began=1), *asked("override", 2.0, text="2"), *asked("reset", 6.0)]
    of_valve(made, (3.0, 5.0), (3.1, 5.0))
    assert CHECKERS["limits_in_force_hold"](made.case()) == []
    of_valve(made, (8.0, 9.0), (8.1, 9.0), first=2)
    assert CHECKERS["limits_in_force_hold"](made.case())


@pytest.mark.parametrize(("phase", "red"), [("unknown", False), ("failed", True)])
def test_an_override_without_an_answer_may_be_in_force(phase: str, red: bool) -> None:
    made = Made()
    made.events += [*declared(1.0, 1, began=1), *asked("override", 2.0, phase=phase, text="2")]
    of_valve(made, (3.0, 5.0), (3.1, 5.0))
    assert bool(CHECKERS["limits_in_force_hold"](made.case())) is red


def test_an_override_without_an_answer_is_over_when_a_later_one_was_answered() -> None:
    made = Made()
    made.events += [
        *declared(1.0, 1, began=1),
        *asked("override", 2.0, phase="unknown", text="2"),
        *asked("override", 12.0, text="1"),
    ]
    of_valve(made, (13.0, 15.0), (13.1, 15.0))
    assert CHECKERS["limits_in_force_hold"](made.case())


def test_of_two_starts_that_differ_the_later_one_counts() -> None:
    made = Made()
    made.events += [*declared(1.0, 1, began=20), *declared(2.0, 3, began=10)]
    made.valve = SeenQueue(declared=1, in_force=1)
    assert CHECKERS["options_are_those_last_said"](made.case()) == []
    of_valve(made, (3.0, 5.0), (3.1, 5.0))
    assert CHECKERS["limits_in_force_hold"](made.case())


@pytest.mark.parametrize(
    "valve",
    [
        pytest.param(SeenQueue(declared=1, overrides=[4], in_force=1), id="the override is not in force"),
        pytest.param(SeenQueue(declared=1, overrides=[2], in_force=2), id="an override that was replaced"),
        pytest.param(SeenQueue(declared=1, in_force=1), id="an override that was forgotten"),
        pytest.param(SeenQueue(declared=3, overrides=[4], in_force=4), id="an old declaration"),
        pytest.param(SeenQueue(declared=1, overrides=[4], in_force=4, paused=True), id="a pause that stays"),
    ],
)
def test_options_that_nobody_said_last(valve: SeenQueue) -> None:
    made = Made()
    made.events += [
        *declared(1.0, 1, began=20),
        *asked("override", 3.0, text="2"),
        *asked("override", 5.0, text="4"),
    ]
    made.valve = SeenQueue(declared=1, overrides=[4], in_force=4)
    assert CHECKERS["options_are_those_last_said"](made.case()) == []
    made.valve = valve
    assert len(CHECKERS["options_are_those_last_said"](made.case())) == 1


def paused(pause: str = "ok", **first: float) -> Made:
    """A pause from 10.1 to 20; with `first`, a resume before it without an answer."""
    made = Made()
    if first:
        made.events += asked("resume", first["resume"], phase="unknown")
    made.events += [*asked("pause", 10.0, phase=pause), *asked("resume", 20.0)]
    return made


@pytest.mark.parametrize(
    ("made", "since", "red"),
    [
        pytest.param(paused(), 15.0, True, id="in the pause"),
        pytest.param(paused(), 9.0, False, id="before it"),
        pytest.param(paused(), 10.15, False, id="the call was there before the answer"),
        pytest.param(paused(), 20.05, False, id="when it is resumed"),
        pytest.param(paused("unknown"), 15.0, False, id="a pause without an answer"),
        pytest.param(paused(resume=9.0), 15.0, False, id="a resume that may come late"),
        pytest.param(paused(resume=2.0), 15.0, True, id="a resume of long ago"),
    ],
)
def test_claims_about_a_pause(made: Made, since: float, red: bool) -> None:
    held(made, since, since + 1, 1, queue=VALVE, task="flow")
    assert bool(CHECKERS["nothing_starts_while_paused"](made.case())) is red


def test_a_repeat_brings_what_was_taken_before_the_pause() -> None:
    made = paused()
    name = held(made, 15.0, 16.0, 1, claimant="x", queue=VALVE, task="flow")
    made.events.append(event("claim", 9.0, began=8.9, claimant="x", number=1, phase="unknown"))
    assert CHECKERS["nothing_starts_while_paused"](made.case()) == []
    assert made.case().takes[name][0].asked_at == 8.9


def turns(*keys: str, claimants: str = "x") -> Made:
    """Who was taken, one every tenth of a second from 3.0 on, all of them ready since the beginning."""
    made = Made()
    for number, key in enumerate(keys):
        claimant = claimants[number % len(claimants)]
        held(made, 3.0 + number / 10, 9.0, number, claimant=claimant, queue=FAIR, key=key)
    return made


@pytest.mark.parametrize(
    ("made", "red"),
    [
        pytest.param(turns(*[CROWD] * 4, "tin"), True, id="one key only, and another waits"),
        pytest.param(turns(*[CROWD, "tin"] * 6), False, id="turn by turn"),
        pytest.param(turns(*[CROWD] * 9), False, id="nobody else waits"),
        pytest.param(turns(*["gold"] * 9, "tin"), False, id="a key of more weight"),
        pytest.param(turns(*["gold"] * 10, "tin"), True, id="more than its weight"),
        pytest.param(turns(*[CROWD] * 6, "tin", claimants="xyz"), False, id="each claimant has its turns"),
    ],
)
def test_turns(made: Made, red: bool) -> None:
    assert bool(CHECKERS["no_key_starves"](made.case())) is red


def test_a_job_that_has_just_become_ready_may_be_found_late() -> None:
    made = turns(*[CROWD] * 4, "tin")
    made.jobs[f"{4:032x}"].ready_at = moment(3.0) - SECOND
    assert CHECKERS["no_key_starves"](made.case()) == []


def test_what_a_dead_process_had_locked_may_be_found_late() -> None:
    made = turns(*[CROWD] * 4, "tin")
    made.events.append(event("fault", 2.5, text="kill member"))
    assert CHECKERS["no_key_starves"](made.case()) == []


def test_jobs_that_a_repeat_brought_were_taken_nobody_knows_when() -> None:
    made = turns(*[CROWD] * 4, "tin")
    made.events.append(event("claim", 2.9, began=2.8, claimant="x", number=1, phase="unknown"))
    assert CHECKERS["no_key_starves"](made.case()) == []


def test_a_run_that_is_released_held_its_job_until_then() -> None:
    made = Made()
    made.events += asked("release", 2.8, jobs=[ONE], fences=[4], answers=["applied"])
    made.events.append(claimed(1.5, ONE, 4, number=0))
    assert [(one.fence, one.until) for one in made.case().holds] == [(5, 3.0), (4, 2.8)]
    assert CHECKERS["one_holder_at_a_time"](made.case())


def test_a_settle_whose_first_answer_was_lost_counts_from_its_first_call() -> None:
    made = Made()
    made.events = [
        *made.events[:5],
        *settled(3.0, ONE, 5, answer="unknown"),
        *settled(3.5, ONE, 5, "already"),
    ]
    assert [(one.since, one.until) for one in made.case().holds] == [(2.0, 3.0)]
