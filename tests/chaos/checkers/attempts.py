"""Attempts and crashes are counted, once each, and stay within their bounds."""

from collections import defaultdict

from tests.chaos.checkers.case import ANSWERED, Case
from tests.chaos.history import Event

CRASH_LIMIT = 3
SOON_S = 15.0
"""Longer than a drain takes."""
USES_AN_ATTEMPT = ("completed", "failed")


def attempts_are_counted(case: Case) -> list[str]:
    """One for each settled outcome: no fewer than were answered, no more than were offered, and never more
    than allowed."""
    certain: dict[str, set[int]] = defaultdict(set)
    possible: dict[str, set[int]] = defaultdict(set)
    for settle in case.settles:
        if settle.outcome in USES_AN_ATTEMPT:
            if settle.answer in ANSWERED:
                certain[settle.job].add(settle.fence)
            elif settle.answer == "unknown":
                possible[settle.job].add(settle.fence)
    found = []
    for job, record in case.reading.jobs.items():
        if record.attempts > record.max_attempts:
            found.append(f"{job}: {record.attempts} attempts of {record.max_attempts}")
        least, most = len(certain[job]), len(certain[job] | possible[job])
        if not record.replays and not least <= record.attempts <= most:
            found.append(f"{job}: {record.attempts} attempts, settled {least} to {most} times")
    return found


def crashes_are_counted(case: Case) -> list[str]:
    """Three at most. Every start of a poison job is on its record, unless it was stopped or given back, or
    its member ended. Nobody else is blamed for the end of a process that nobody killed."""
    found = []
    starts = _starts(case)
    excused = _released(case) | _cut_off(case)
    for job, record in case.reading.jobs.items():
        if record.crashes > CRASH_LIMIT:
            found.append(f"{job} has crashed {record.crashes} times")
        told = [fence for fence in starts[job] if fence not in excused]
        if record.task == "poison" and len(told) > record.failure_count:
            found.append(f"{job}: {len(told)} starts, {record.failure_count} on record")
    killed = {pid for event in case.history.of("fault") for pid in event.pids}
    for job, fence in _blamed(case):
        start = starts[job].get(fence)
        if start is not None and start.task != "poison" and start.pid not in killed:
            found.append(f"{job} was blamed for the end of process {start.pid}, which nobody killed")
    return found


def _starts(case: Case) -> dict[str, dict[int, Event]]:
    """Job -> fence -> its start, as its code wrote it down."""
    found: dict[str, dict[int, Event]] = defaultdict(dict)
    for event in case.starts:
        found[event.jobs[0]][event.fences[0]] = event
    return found


def _released(case: Case) -> set[int]:
    """Runs that left no failure: released, or stopped on request (also when they crashed in that moment)."""
    found = {fence for one in case.history.operations("release") for fence in one.fences}
    return found | {settle.fence for settle in case.settles if settle.outcome == "stopped"}


def _blamed(case: Case) -> list[tuple[str, int]]:
    """Runs of which somebody said that they took their process with them."""
    found = [(one.job, one.fence) for one in case.settles if one.outcome == "crashed"]
    for one in case.history.operations("retire"):
        found += [
            (job, fence)
            for job, fence, verdict in zip(one.jobs, one.fences, one.outcomes, strict=True)
            if verdict == "crash"
        ]
    return found


def _cut_off(case: Case) -> set[int]:
    """Runs whose member was killed or drained soon after: then nobody may be left to tell of them. And those
    in a process of their own whose worker process ended soon after: they are given back, as innocent of that.
    But not those that somebody has told of, and was answered."""
    ends: dict[str | int, list[float]] = defaultdict(list)
    retired: dict[str, list[float]] = defaultdict(list)
    for event in case.history.of("death", "fault"):
        whose: list[str | int] = [*event.pids, event.text]  # the text of a death is the member's name
        for one in whose:
            ends[one].append(event.at)
    claims = {fence: event for event in case.history.of("claim") for fence in event.fences}
    for event in case.history.of("retire"):
        retired[event.claimant].append(event.at)
    told = {one.fence for one in case.settles if one.outcome == "crashed" and one.answer in ANSWERED}
    found = set()
    for start in case.starts:
        fence = start.fences[0]
        if start.task != "poison" or fence in told:
            continue
        claim = claims.get(fence)
        moments = [*ends[start.pid], *ends[start.who]]
        if claim is not None and claim.pid != start.pid:
            moments += retired[claim.claimant]
        if any(0 <= at - start.at <= SOON_S for at in moments):
            found.add(fence)
    return found


def replays_happen_once(case: Case) -> list[str]:
    """As often as was answered, and not more often than was asked."""
    asked, found = case.invoked("replay"), []
    for job, record in case.reading.jobs.items():
        operations = asked.get(job, [])
        least = sum(one.phase == "ok" and one.answers[0] == "replayed" for one in operations)
        most = least + sum(one.phase == "unknown" for one in operations)
        if not least <= record.replays <= most:
            found.append(f"{job} was replayed {record.replays} times; answered {least}, asked {most}")
    return found


def the_cancelled_never_start(case: Case) -> list[str]:
    """After "cancelled" nobody claims the job any more, unless it is replayed."""
    replays, found = case.invoked("replay"), []
    for job, operations in case.invoked("cancel").items():
        told = [one.ended for one in operations if one.phase == "ok" and one.answers[0] == "cancelled"]
        if not told or job in replays:
            continue
        found += [
            f"{job} was claimed under {take.fence} after it was cancelled"
            for take in case.takes.get(job, ())
            if take.began > min(told)
        ]
        if job in case.reading.jobs and case.reading.jobs[job].state != "cancelled":
            found.append(f"{job} was cancelled and is {case.reading.jobs[job].state}")
    return found
