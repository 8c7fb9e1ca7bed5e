"""A lease is kept by heartbeats, and only who heartbeats steadily may declare others gone."""

from collections import defaultdict

from tests.chaos.checkers.case import Case
from tests.chaos.history import Event
from tests.chaos.times import Times

MISSED_HEARTBEATS = 2


def nobody_living_is_reclaimed(case: Case) -> list[str]:
    """No job is taken from a member whose heartbeat the engine had recorded within the lease."""
    heartbeats: dict[str, list[tuple[float, float]]] = {}
    for event in case.history.of("heartbeat"):
        if event.phase == "ok":
            heartbeats.setdefault(event.text, []).append((event.at, event.engine_at / 1e6))
    found = []
    for sweep in case.history.of("reclaim"):
        for name in sweep.answers:
            known = [engine_at for answered, engine_at in heartbeats.get(name, ()) if answered < sweep.began]
            silence = case.engine_time(sweep.at) - max(known, default=float("-inf"))
            if silence < case.times.lease_s:
                found.append(f"{name} was declared gone {silence:.3f} s after its last heartbeat")
    return found


def sweepers_are_steady(case: Case) -> list[str]:
    """Who declares others gone has itself beaten for a full lease without a gap of more than two heartbeats:
    an outage silences everybody alike. A heartbeat was recorded at some moment between its call and its
    answer; one whose answer never came may have been."""
    heartbeats: dict[str, list[Event]] = defaultdict(list)
    for event in case.history.of("heartbeat"):
        if event.phase in ("ok", "unknown"):
            heartbeats[event.member].append(event)
    return [
        f"{sweep.who} declared {', '.join(sweep.answers)} gone without a lease of steady heartbeats "
        "of its own"
        for sweep in case.history.of("reclaim")
        if not _is_steady(sweep, heartbeats[sweep.member], case.times)
    ]


def _is_steady(sweep: Event, heartbeats: list[Event], times: Times) -> bool:
    """Whether the heartbeats before a sweep can have been recorded without a gap, for a lease."""
    reached = sweep.began
    for heartbeat in sorted(
        (one for one in heartbeats if one.began < sweep.at), key=lambda one: one.at, reverse=True
    ):
        if reached - heartbeat.at > MISSED_HEARTBEATS * times.heartbeat_s:
            return False
        reached = min(reached, heartbeat.began)
        if reached <= sweep.at - times.lease_s:
            return True
    return False
