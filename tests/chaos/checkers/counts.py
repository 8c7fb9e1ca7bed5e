"""Counts equal a recount."""

from tests.chaos.checkers.case import ANSWERED, Case


def counts_equal_a_recount(case: Case) -> list[str]:
    """What the engine counts in each state is what a listing of that state shows."""
    return [
        f"{state}: counted {counted}, listed {len(case.reading.listed.get(state, ()))}"
        for state, counted in case.reading.counted.items()
        if counted != len(case.reading.listed.get(state, ()))
    ]


def the_window_counts_what_ended(case: Case) -> list[str]:
    """The rollups of a day count each settled outcome once."""
    certain = {(one.job, one.fence): one.outcome for one in case.settles if one.answer in ANSWERED}
    possible = {(one.job, one.fence): one.outcome for one in case.settles if one.answer == "unknown"}
    possible |= certain
    found = []
    for name in ("completed", "failed"):
        least = sum(outcome == name for outcome in certain.values())
        most = sum(outcome == name for outcome in possible.values())
        counted = case.reading.finished.get(name, 0)
        if not least <= counted <= most:
            found.append(f"{name}: counted {counted}, settled {least} to {most} times")
    return found
