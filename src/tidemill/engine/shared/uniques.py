"""Unique keys, the same in every store: their numbers, and what is said of a call that is refused."""

from collections.abc import Iterable, Sequence

from tidemill.model.errors import NotUnique
from tidemill.model.ids import JobId, show_id
from tidemill.model.jobs.job import NewJob, Stored
from tidemill.model.jobs.unique import UniqueKey

END, START, PERIOD = range(3)
"""Until when a key is held, as stored."""
EXISTING, REPLACE, REFUSE = range(3)
"""What a call does that meets a job, as it is sent."""

_CONFLICTS = {"existing": EXISTING, "replace": REPLACE, "refuse": REFUSE}


def may_move(job: NewJob) -> bool:
    """Whether storing it may bring a job into a state that the caller cannot know: a child, or another job
    that it replaces."""
    return bool(job.after) or (job.unique is not None and job.unique.on_conflict == "replace")


def until_code(unique: UniqueKey) -> int:
    """Until when the key is held."""
    if unique.period is not None:
        return PERIOD
    return START if unique.until == "start" else END


def conflict_code(unique: UniqueKey) -> int:
    """What the call does that meets a job."""
    return _CONFLICTS[unique.on_conflict]


def once(jobs: Sequence[NewJob]) -> list[NewJob]:
    """The jobs without those whose id came before."""
    return list({job.id: job for job in reversed(jobs)}.values())[::-1]


def answers_of_all(
    jobs: Sequence[NewJob], different: Sequence[NewJob], answers: Iterable[Stored]
) -> list[Stored]:
    """The answers of all jobs, from those of `once`: a repeat finds what the first has stored or met."""
    first = {job.id: stored for job, stored in zip(different, answers, strict=True)}
    found = []
    for job in jobs:
        found.append(first[job.id])
        first[job.id] = Stored(first[job.id].id, False)
    return found


def not_unique(task: str, key: str, holder: JobId) -> NotUnique:
    """The error of a call with `on_conflict="refuse"`."""
    return NotUnique(
        f"the unique key {key!r} of {task} is held by the job {show_id(holder)}: nothing was stored; "
        'wait for its end, or use on_conflict="existing"',
        holder,
    )
