"""Each death is handled once, by a job that came with it."""

from tests.chaos.checkers.case import Case
from tidemill.model.ids import handler_id


def deaths_are_handled(case: Case) -> list[str]:
    """Whatever is dead, but for handlers, has one and has left a job of it; and no handler is there without a
    death."""
    jobs = case.reading.jobs
    missing = [
        f"{job} ({one.task}) is dead and nothing handles it"
        for job, one in jobs.items()
        if one.state == "dead"
        and one.task != "bury"
        and (not one.on_dead.endswith("bury") or handler_of(job, one.replays) not in jobs)
    ]
    deaths = {
        handler_of(job, replays)
        for job, one in jobs.items()
        for replays in range(one.replays + (one.state == "dead"))
    }
    return missing + [
        f"{job} handles a death that never was"
        for job, one in jobs.items()
        if one.task == "bury" and job not in deaths
    ]


def handler_of(job: str, replays: int) -> str:
    """The id of the job that handles a death."""
    return handler_id(bytes.fromhex(job), replays).hex()
