"""Which jobs of a schedule are kept: the last job, and the `keep` jobs that were fired before it.

    fired before, oldest first            this firing
    [ excess | the last `keep` ticks ]    [ new ticks ]

The schedule's row has the ticks whose jobs may still be there (`kept`). Each firing reads the jobs of the
excess, and does one of three things with each tick:

| its job | the tick | the job |
|---|---|---|
| is gone, or dead | leaves the row | a dead letter stays as long as its queue says |
| completed or cancelled | stays in the row | is dropped after the firing |
| has not ended | stays in the row | is left alone |

So a job that is not dropped, because the controller dies between the firing and the drop, is found again by
the next firing. A tick leaves the row when its job is known to be gone. Everything is bounded: where the row
is full, the oldest ticks leave it, and their jobs stay as long as their queue says.
"""

from collections.abc import Mapping, Sequence

from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobRecord, JobState
from tidemill.model.schedules.firing import MISSED_LIMIT
from tidemill.model.schedules.schedule import KEEP_LIMIT, Schedule, tick_id
from tidemill.model.time import Instant

EXCESS_LIMIT = 2 * MISSED_LIMIT
"""The most jobs that one firing reads: as many as the last one can have dropped, and as many as it can
have made."""
KEPT_LIMIT = KEEP_LIMIT + EXCESS_LIMIT
"""The most ticks in a row."""


def excess_of(schedule: Schedule) -> dict[Instant, JobId]:
    """The jobs that the next firing reads, by their ticks."""
    if schedule.keep is None:
        return {}
    beyond = max(0, len(schedule.kept) - schedule.keep)
    return {tick: tick_id(schedule.name, tick) for tick in schedule.kept[: min(beyond, EXCESS_LIMIT)]}


def droppable(schedule: Schedule, jobs: Mapping[JobId, JobRecord]) -> list[JobId]:
    """Those of its excess that a firing drops. `jobs`: as they are now; one that is missing is gone."""
    return [job_id for job_id in excess_of(schedule).values() if job_id in jobs and _is_spent(jobs[job_id])]


def kept_after(
    schedule: Schedule, made: Sequence[Instant], jobs: Mapping[JobId, JobRecord] | None = None
) -> tuple[Instant, ...]:
    """The ticks in its row after a firing that makes jobs for these. `jobs`: those of its excess, as they are
    now; None: they were not read."""
    if schedule.keep is None:
        return ()
    excess = {} if jobs is None else excess_of(schedule)
    over = {tick for tick, job_id in excess.items() if jobs is not None and _is_over(jobs.get(job_id))}
    return (*(tick for tick in schedule.kept if tick not in over), *made)[-KEPT_LIMIT:]


def _is_spent(job: JobRecord) -> bool:
    return job.state in (JobState.COMPLETED, JobState.CANCELLED)


def _is_over(job: JobRecord | None) -> bool:
    """There is nothing left to drop."""
    return job is None or job.state is JobState.DEAD
