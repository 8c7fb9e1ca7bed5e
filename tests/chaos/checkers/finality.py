"""Every job ends in exactly one final state, and stays there."""

from collections import Counter

from tests.chaos.app import ENDS_COMPLETED, ENDS_DEAD
from tests.chaos.checkers.case import ENDED, Case
from tests.chaos.history import Operation

CRASH_LIMIT = 3


def exactly_one_final_state(case: Case) -> list[str]:
    """At the end each job is in one list, the one of its state, and that is a final one."""
    reading, found = case.reading, []
    places = Counter(job for ids in reading.listed.values() for job in ids)
    found += [f"{job} is listed {times} times" for job, times in places.items() if times > 1]
    for job, record in reading.jobs.items():
        if record.state not in ENDED:
            found.append(f"{job} ({record.task}) has not ended: {record.state}")
        if job not in places:
            found.append(f"{job} is {record.state} and in no list")
    for state, ids in reading.listed.items():
        found += [
            f"{job} is listed as {state} and says {reading.jobs[job].state}"
            for job in ids
            if job in reading.jobs and reading.jobs[job].state != state
        ]
    return found


def final_states_stay(case: Case) -> list[str]:
    """Whoever saw a job ended sees it ended the same way ever after, unless it was replayed."""
    found: list[str] = []
    seen: dict[tuple[str, str], Operation] = {}
    for read in sorted(case.history.operations("read"), key=lambda one: one.ended):
        if read.phase == "ok" and read.answers[0] in ENDED:
            first = seen.setdefault((read.jobs[0], read.answers[1]), read)
            if first.answers != read.answers and first.ended < read.began:
                found.append(f"{read.jobs[0]} was {first.answers} and later {read.answers}")
    for (job, replays), read in seen.items():
        record = case.reading.jobs.get(job)
        if record is None or str(record.replays) != replays:
            continue
        at_last = [record.state, replays, str(record.settled_fence)]
        if at_last != read.answers:
            found.append(f"{job} was {read.answers} and in the end {at_last}")
    return found


def ends_as_its_code_says(case: Case) -> list[str]:
    """What completes by its code completes; what fails is dead; only who was asked to is cancelled."""
    cancels, found = case.invoked("cancel"), []
    for job, record in case.reading.jobs.items():
        ways = {"completed"} if record.task in ENDS_COMPLETED else set()
        ways |= {"dead"} if record.task in ENDS_DEAD or record.crashes >= CRASH_LIMIT else set()
        ways |= {"cancelled"} if job in cancels else set()
        if ways and record.state in ENDED and record.state not in ways:
            why = record.failures[-1].message if record.failures else ""
            found.append(
                f"{job} ({record.task}) ended {record.state}, not {' or '.join(sorted(ways))}: {why}"
            )
    return found
