"""Histories made by hand: a sound run, to be spoiled, and the events to do that with."""

from typing import Any

from tests.chaos.app import EVERY_SECOND
from tests.chaos.checkers.case import Case
from tests.chaos.history import Event, merged
from tests.chaos.reading import Reading, SeenJob, SeenQueue, SeenSchedule
from tests.chaos.times import Times
from tidemill.model.schedules.schedule import tick_id
from tidemill.model.time import SECOND

ONE, OTHER = "01" * 16, "02" * 16
OFFSET_S = 1_000.0
TICK = 1_700_000_000 * SECOND


def event(kind: str, at: float, **fields: Any) -> Event:
    return Event(**{"kind": kind, "at": at, "pid": 7, "who": "m0", **fields})


def asked(kind: str, at: float, phase: str = "ok", **fields: Any) -> list[Event]:
    """An operation that took a tenth of a second."""
    op = f"{kind}-{at}-{','.join(fields.get('jobs', []))}"
    answers = fields.pop("answers", [])
    return [
        event(kind, at, phase="invoked", op=op, **fields),
        event(kind, at + 0.1, phase=phase, op=op, answers=answers),
    ]


def claimed(at: float, job: str, fence: int, number: int = 1, claimant: str = "c") -> Event:
    return event(
        "claim", at, began=at - 0.1, jobs=[job], fences=[fence], claimant=claimant, number=number, phase="ok",
        engine_at=moment(at),
    )  # fmt: skip


def moment(at: float) -> int:
    """The engine's clock then."""
    return round((at + OFFSET_S) * SECOND)


def held(made: "Made", since: float, until: float, number: int, claimant: str = "", **job: Any) -> str:
    """One more job, ready all the time, and its run; its id."""
    name = f"{number:032x}"
    fence = 1_000 + number
    made.jobs[name] = SeenJob(
        state="completed", settled_fence=fence, result=str(fence), ready_at=moment(0),
        claimed_at=moment(since), **job,
    )  # fmt: skip
    made.listed["completed"].append(name)
    made.counted["completed"] += 1
    made.finished["completed"] += 1
    made.events += [
        *asked("enqueue", 0.5 + number / 1_000, jobs=[name], text="quick"),
        claimed(since, name, fence, number=number, claimant=claimant or f"c{number}"),
        *settled(until, name, fence),
    ]
    return name


def declared(at: float, limit: int, began: int) -> list[Event]:
    """A member that started then said so of the queue whose options change."""
    return asked("declare", at, text=str(limit), engine_at=began)


def settled(
    at: float, job: str, fence: int, answer: str = "applied", outcome: str = "completed"
) -> list[Event]:
    return asked("settle", at, jobs=[job], fences=[fence], outcomes=[outcome], answers=[answer])


def ran(at: float, job: str, fence: int, **fields: Any) -> list[Event]:
    return [
        event("start", at, **{"jobs": [job], "fences": [fence], "task": "quick", **fields}),
        event("end", at + 0.1, **{"jobs": [job], "fences": [fence], "task": "quick", **fields}),
    ]


def blamed(at: float, job: str, fence: int) -> list[Event]:
    return asked("retire", at, jobs=[job], fences=[fence], outcomes=["crash"])


def heartbeat_answered(at: float, name: str = "host:1", member: str = "aa") -> Event:
    engine_at = int((at + OFFSET_S) * 1e6)
    return event("heartbeat", at, began=at - 0.01, phase="ok", text=name, member=member, engine_at=engine_at)


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
            *asked("read", 4.0, jobs=[ONE], answers=["completed", "0", "5"]),
        ]
        self.jobs = {ONE: SeenJob(state="completed", settled_fence=5, result="5")}
        self.listed = {"completed": [ONE]}
        self.counted = {"completed": 1, "ready": 0}
        self.finished = {"completed": 1}
        self.drained_s: float | None = 1.0
        self.caught_up_s: float | None = 1.0
        self.schedules: dict[str, SeenSchedule] = {}
        self.valve: SeenQueue | None = None

    def case(self) -> Case:
        reading = Reading(
            jobs=self.jobs,
            listed=self.listed,
            counted=self.counted,
            finished=self.finished,
            drained_s=self.drained_s,
            caught_up_s=self.caught_up_s,
            schedules=self.schedules,
            valve=self.valve,
            engine_offset_s=OFFSET_S,
        )
        return Case(merged(self.events), reading, Times(slack_s=1.0))


def elected(at: float, term: int) -> Event:
    return event("acquire", at, began=at - 0.01, phase="ok", text="controller", number=term)


def fired(at: float, made: Made, *seconds: float, answer: str = "fired", first: int | None = None) -> None:
    """A firing of the schedule of every second, with its jobs."""
    ids = [tick_id(EVERY_SECOND, TICK + round(second * SECOND)).hex() for second in seconds]
    tick = TICK + round((seconds[0] if first is None else first) * SECOND)
    made.events += asked("fire", at, text=EVERY_SECOND, number=3, engine_at=tick, jobs=ids, answers=[answer])
    if answer == "fired":
        done = SeenJob(state="completed", task="tock", schedule=EVERY_SECOND, attempts=0, result="0")
        made.jobs |= dict.fromkeys(ids, done)
        made.listed["completed"] += [job for job in ids if job not in made.listed["completed"]]
        made.counted["completed"] = len(made.listed["completed"])
        made.schedules[EVERY_SECOND] = SeenSchedule(last_at=TICK + round(seconds[-1] * SECOND))
