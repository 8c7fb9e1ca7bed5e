"""Events and signals: what is emitted about a change.

Events are hints for people and dashboards: they may be lost, and then a gap says so. Signals are hints
between processes.
"""

from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

from tidemill.model.ids import JobId, show_id
from tidemill.model.jobs.job import JobState
from tidemill.model.time import Instant, moment_of


class Event(msgspec.Struct, frozen=True, gc=False):
    """A job came into a state."""

    job_id: JobId
    """16 bytes; `job` is the form that people read."""
    state: JobState
    queue: str
    task: str
    instant: Instant
    """When, by the engine's clock as the emitter knows it; `at` is the same as a `datetime`."""
    member: str = ""
    """Who runs it; only of `running`."""
    error: str = ""
    """Why it is dead or tried again, in one line."""

    def __repr__(self) -> str:
        parts = {
            "job": self.job,
            "state": self.state.value,
            "queue": self.queue,
            "task": self.task,
            "at": self.at.isoformat(),
            "member": self.member,
            "error": self.error,
        }
        return f"Event({', '.join(f'{name}={value!r}' for name, value in parts.items() if value)})"

    @property
    def job(self) -> str:
        """The job's id, as people read it: what `Tidemill.job` takes."""
        return show_id(self.job_id)

    @property
    def at(self) -> datetime:
        """When it happened, in UTC."""
        return moment_of(self.instant)


Why: TypeAlias = Literal["lost", "slow", "unheard"]


class Gap(msgspec.Struct, frozen=True):
    """Here events are missing: a reader that keeps an account of them has to read the jobs themselves now."""

    why: Why
    """lost: on the way; or never sent, because there were too many, or because a call that changes jobs got
    no answer, so that its changes are unknown. slow: this reader did not keep up. unheard: the engine was
    out of reach, so that emitters did not see this reader's announcement; or no signal arrives here."""
    missed: int | None = None
    """How many: of one emitter and whatever the filter (lost), of those that were wanted (slow); None: not
    known."""


class EventFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which events a reader wants; what is None does not matter."""

    queue: str | None = None
    task: str | None = None
    states: frozenset[JobState] | None = None
    job: JobId | None = None

    def may_want(self, state: JobState, queue: str, task: str) -> bool:
        """Whether an event that says this is wanted, if it is about the right job."""
        return (
            (self.states is None or state in self.states)
            and (self.queue is None or queue == self.queue)
            and (self.task is None or task == self.task)
        )


class Signal(msgspec.Struct, frozen=True):
    """A hint on a topic. It may be lost, doubled or late, so it only ever makes things faster."""

    topic: str
    text: str = ""


def ready_topic(queue: str) -> str:
    """Something became claimable in this queue."""
    return f"ready:{queue}"


def waiter_topic(waiter: str) -> str:
    """A job that this waiter watches has ended; the text is its id in hex."""
    return f"ended:{waiter}"


def member_topic(member: bytes) -> str:
    """A stop of a job of this member was requested: send a heartbeat now, and learn of which."""
    return f"stop:{member.hex()}"


CONTROLLER_TOPIC = "controller"
"""The controller has given up its lease: stand for it now."""

OPTIONS_TOPIC = "options"
"""The options of some queue have changed: read them again."""

EVENTS_TOPIC = "events"
"""Events; the text is a batch of them (`event_batch`). Loud: an engine may keep it away from those who listen
to other topics."""
ANY_TOPIC = "*"
"""Something may have changed: poll. Delivered to every subscriber whatever its topics."""
