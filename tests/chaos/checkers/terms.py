"""One controller at a time."""

from itertools import pairwise

from tests.chaos.checkers.case import Case
from tests.chaos.history import Event, Operation
from tidemill.model.view import CONTROLLER_LEASE

STOPS = ("stop supervisor", "stop member", "stop controller")


def terms_do_not_overlap(case: Case) -> list[str]:
    """A newer term has a greater fence, and nobody begins a write of an older term once a newer one was
    given: unless it was stopped between its last look at the clock and that write, which ticks must bear."""
    found = []
    elected = [event for event in case.history.of("acquire") if event.text == CONTROLLER_LEASE]
    for before, after in pairwise(elected):
        if before.at < after.began and after.number < before.number:
            found.append(f"term {after.number} was given after term {before.number}")
    stopped = [event for event in case.history.of("fault") if event.text in STOPS]
    for fire in case.history.operations("fire"):
        newer = [one for one in elected if one.number > fire.number and one.at < fire.began]
        if fire.number and newer and not _was_stopped(case, fire, elected, stopped):
            found.append(
                f"{fire.who} fired {fire.text} in term {fire.number}, after term {newer[0].number} began"
            )
    return found


def _was_stopped(case: Case, fire: Operation, elected: list[Event], stopped: list[Event]) -> bool:
    """In that term, and it has only just gone on: its next look at the clock tells it that the term is over.
    The slack is for a fault that ends late, and for what a busy machine takes to let it go on."""
    since = min((one.began for one in elected if one.number == fire.number), default=float("inf"))
    return any(
        stop.member == fire.who and since <= stop.at < fire.began <= stop.at + stop.until + case.times.slack_s
        for stop in stopped
    )
