"""What is told about a change. Events are hints for people and dashboards: they may be lost."""

import msgspec

from penstock.model.ids import JobId
from penstock.model.job import JobState
from penstock.model.time import Instant


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """A job came into a state."""

    job: JobId
    state: JobState
    queue: str
    task: str
    at: Instant
    member: str = ""
    error: str = ""


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
    """A job of this member was asked to stop: beat now, and see."""
    return f"asked:{member.hex()}"


CONTROLLER_TOPIC = "controller"
"""The controller has given up its lease: stand for it now."""

ANY_TOPIC = "*"
"""Something may have changed; look. Delivered to every subscriber whatever its topics."""
