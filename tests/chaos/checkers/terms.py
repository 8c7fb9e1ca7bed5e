"""One controller at a time, and one job for each tick of a schedule."""

from collections import defaultdict
from itertools import pairwise

from tests.chaos.checkers.case import Case
from tests.chaos.history import Operation

STOPS = ("stop supervisor", "stop member", "stop controller")


def terms_do_not_overlap(case: Case) -> list[str]:
    """A newer term has a greater fence, and nobody begins a write of an older term once a newer one was
    given: unless it was stopped between its last look at the clock and that write, which ticks must bear."""
    found = []
    elected = sorted(case.history.of("acquire"), key=lambda event: event.at)
    for before, after in pairwise(elected):
        if before.text == after.text and before.at < after.began and after.number < before.number:
            found.append(f"{after.text}: term {after.number} was given after term {before.number}")
    stopped = [event for event in case.history.of("fault") if event.text in STOPS]
    for fire in case.history.operations("fire"):
        newer = [one for one in elected if one.number > fire.number and one.at < fire.began]
        excused = any(stop.at < fire.began and fire.who == stop.member for stop in stopped)
        if fire.number and newer and not excused:
            found.append(
                f"{fire.who} fired {fire.text} in term {fire.number}, after term {newer[0].number} began"
            )
    return found


def one_job_per_tick(case: Case) -> list[str]:
    """A tick is fired once, whoever tries, and what it fired is there."""
    fires: dict[tuple[str, int], list[Operation]] = defaultdict(list)
    for fire in case.history.operations("fire"):
        fires[fire.text, fire.engine_at].append(fire)
    found = []
    for (name, tick), tries in fires.items():
        done = [one for one in tries if one.phase == "ok" and one.answers[0] == "fired"]
        if len(done) > 1:
            found.append(f"{name}: the tick {tick} was fired {len(done)} times")
        if len({tuple(one.jobs) for one in tries}) > 1:
            found.append(f"{name}: the tick {tick} was tried with different jobs")
        found += [
            f"{name}: the job {job} of the tick {tick} is not there"
            for one in done
            for job in one.jobs
            if job not in case.reading.jobs
        ]
    return found
