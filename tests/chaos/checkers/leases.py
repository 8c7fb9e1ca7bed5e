"""A lease is kept by beats, and only who beats steadily may declare others gone."""

from collections import defaultdict

from tests.chaos.checkers.case import Case
from tests.chaos.history import Event
from tests.chaos.times import Times

MISSED_BEATS = 2


def nobody_living_is_reclaimed(case: Case) -> list[str]:
    """No job is taken from a member whose beat the engine had recorded within the lease."""
    beats: dict[str, list[tuple[float, float]]] = {}
    for event in case.history.of("beat"):
        if event.phase == "ok":
            beats.setdefault(event.text, []).append((event.at, event.engine_at / 1e6))
    found = []
    for sweep in case.history.of("reclaim"):
        for name in sweep.answers:
            known = [engine_at for answered, engine_at in beats.get(name, ()) if answered < sweep.began]
            silence = case.engine_time(sweep.at) - max(known, default=float("-inf"))
            if silence < case.times.lease_s:
                found.append(f"{name} was declared gone {silence:.3f} s after its last beat")
    return found


def sweepers_are_steady(case: Case) -> list[str]:
    """Who declares others gone has itself beaten for a full lease without a gap of more than two beats: an
    outage silences everybody alike. A beat was recorded at some moment between its call and its answer; one
    whose answer never came may have been."""
    beats: dict[str, list[Event]] = defaultdict(list)
    for event in case.history.of("beat"):
        if event.phase in ("ok", "unknown"):
            beats[event.member].append(event)
    return [
        f"{sweep.who} declared {', '.join(sweep.answers)} gone without a lease of steady beats of its own"
        for sweep in case.history.of("reclaim")
        if not _is_steady(sweep, beats[sweep.member], case.times)
    ]


def _is_steady(sweep: Event, beats: list[Event], times: Times) -> bool:
    """Whether the beats before a sweep can have been recorded without a gap, for a lease."""
    reached = sweep.began
    for beat in sorted((one for one in beats if one.began < sweep.at), key=lambda one: one.at, reverse=True):
        if reached - beat.at > MISSED_BEATS * times.beat_s:
            return False
        reached = min(reached, beat.began)
        if reached <= sweep.at - times.lease_s:
            return True
    return False
