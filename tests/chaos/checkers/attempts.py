"""Attempts and crashes are counted, once each, and stay within their bounds."""

from collections import defaultdict

from tests.chaos.checkers.case import ANSWERED, Case

CRASH_LIMIT = 3
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
    """Three at most; a poison job starts no more often than its crashes and losses explain; others are not
    blamed for more deaths than there can have been."""
    starts: dict[str, set[int]] = defaultdict(set)
    for event in case.starts:
        starts[event.jobs[0]].add(event.fences[0])
    deaths = len(case.history.of("fault")) + sum(len(one.answers) for one in case.history.of("reclaim"))
    found, blamed = [], 0
    for job, record in case.reading.jobs.items():
        if record.crashes > CRASH_LIMIT:
            found.append(f"{job} has crashed {record.crashes} times")
        if record.task == "poison":
            if len(starts[job]) > record.failure_count + deaths:
                found.append(f"{job}: {len(starts[job])} starts, {record.failure_count} on record")
        else:
            blamed += record.crashes
    if blamed > deaths:
        found.append(f"innocent jobs were blamed for {blamed} crashes; {deaths} deaths can explain them")
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
