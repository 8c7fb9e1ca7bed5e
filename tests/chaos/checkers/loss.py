"""Nothing acknowledged is lost, and what was refused was not done."""

from tests.chaos.checkers.case import Case


def nothing_acknowledged_is_lost(case: Case) -> list[str]:
    """An enqueue that returned, in part or as a whole, is there at the end."""
    return [
        f"{job} was acknowledged to {operation.who} and is not there"
        for operation in case.enqueues
        if operation.phase == "ok"
        for job in operation.jobs
        if job not in case.reading.jobs
    ]


def refusals_change_nothing(case: Case) -> list[str]:
    """A job that only ever was refused does not exist."""
    refused = {job for one in case.enqueues if one.phase == "failed" for job in one.jobs}
    asked_otherwise = {job for one in case.enqueues if one.phase != "failed" for job in one.jobs}
    return [
        f"{job} was refused and is there, {case.reading.jobs[job].state}"
        for job in sorted(refused - asked_otherwise)
        if job in case.reading.jobs
    ]


def nobody_runs_what_nobody_asked_for(case: Case) -> list[str]:
    """Every job that ran was enqueued by somebody, fired by a schedule, or came with a death (of which
    `deaths_are_handled` knows more)."""
    known = {job for one in case.enqueues for job in one.jobs}
    known |= {job for job, one in case.reading.jobs.items() if one.schedule or one.task == "bury"}
    return [
        f"{event.jobs[0]} ran and nobody enqueued it" for event in case.starts if event.jobs[0] not in known
    ]
