"""One holder at a time, fences that grow, and no writes of those who have lost their job."""

from collections import defaultdict
from itertools import pairwise

from tests.chaos.checkers.case import ANSWERED, Case, Hold


def fences_grow(case: Case) -> list[str]:
    """No fence is given twice, and a later claim of a job has a greater one."""
    found = []
    given: dict[int, tuple[str, tuple[str, int]]] = {}
    for job, takes in case.takes.items():
        for take in takes:
            first = given.setdefault(take.fence, (job, take.call))
            if first != (job, take.call):
                found.append(f"fence {take.fence} was given for {first[0]} and again for {job}")
        for before, after in pairwise(sorted(takes, key=lambda take: take.ended)):
            if before.ended < after.began and before.call != after.call and after.fence <= before.fence:
                found.append(f"{job} was claimed under {before.fence} and later under {after.fence}")
    return found


def stale_writes_change_nothing(case: Case) -> list[str]:
    """An outcome is not applied once another claim has the job, nor twice; what is recorded is the outcome
    of the run that settled it."""
    found = []
    applied: dict[tuple[str, int], int] = defaultdict(int)
    for settle in case.settles:
        if settle.answer != "applied":
            continue
        applied[settle.job, settle.fence] += 1
        later = [
            take.fence
            for take in case.takes.get(settle.job, ())
            if take.fence > settle.fence and take.ended < settle.began
        ]
        if later:
            found.append(
                f"{settle.job}: {settle.outcome} under {settle.fence} applied after claim {later[0]}"
            )
    found += [f"{job}: fence {fence} applied {n} times" for (job, fence), n in applied.items() if n > 1]
    for job, record in case.reading.jobs.items():
        if record.state == "completed" and record.result != str(record.settled_fence):
            found.append(f"{job}: settled under {record.settled_fence} with the result of {record.result}")
    return found


def settled_by_whom_it_says(case: Case) -> list[str]:
    """The last settle of a job is one that somebody offered and was not told to be stale."""
    offered: dict[tuple[str, int], set[str]] = defaultdict(set)
    for settle in case.settles:
        offered[settle.job, settle.fence].add(settle.answer)
    found = []
    for job, record in case.reading.jobs.items():
        answers = offered[job, record.settled_fence]
        if record.settled_fence and not answers & {*ANSWERED, "unknown"}:
            found.append(
                f"{job} is settled under {record.settled_fence}; offered: {sorted(answers) or 'never'}"
            )
    return found


def one_holder_at_a_time(case: Case) -> list[str]:
    """Two runs never have the same job at once."""
    holds: dict[str, list[Hold]] = defaultdict(list)
    for hold in case.holds:
        holds[hold.job].append(hold)
    return [
        f"{job}: {before.fence} held it until {before.until:.3f}, {after.fence} since {after.since:.3f}"
        for job, of_it in holds.items()
        for before, after in pairwise(sorted(of_it, key=lambda hold: hold.since))
        if after.since < before.until
    ]


def unique_keys_are_unique(case: Case) -> list[str]:
    """Never two live jobs of one unique key: each certainly lived from the answer to its enqueue to the
    outcome that was applied, or to the first wish to cancel it. (Of one that was replayed, nobody knows
    when.)"""
    keys = {event.jobs[0]: event.key for event in case.starts if event.task == "single"}
    since = {job: op.ended for op in case.enqueues if op.phase == "ok" for job in op.jobs if job in keys}
    until = {settle.job: settle.began for settle in case.settles if settle.answer == "applied"}
    cancels = case.invoked("cancel")
    lives: dict[str, list[Hold]] = defaultdict(list)
    for job, began in since.items():
        record = case.reading.jobs.get(job)
        if job in until and record is not None and not record.replays:
            end = min([until[job], *(cancel.began for cancel in cancels[job])])
            if began < end:
                lives[keys[job]].append(Hold(job=job, fence=0, since=began, until=end, asked_at=began))
    return [
        f"{key}: {before.job} lived until {before.until:.3f}, {after.job} since {after.since:.3f}"
        for key, of_it in lives.items()
        for before, after in pairwise(sorted(of_it, key=lambda life: life.since))
        if after.since < before.until
    ]
