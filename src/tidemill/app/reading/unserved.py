"""Jobs that wait for a worker which is not there: queues that none takes, tasks that none knows."""

from collections.abc import Sequence
from typing import NamedTuple

from tidemill.engine.protocol import Engine
from tidemill.model.jobs.job import JobRecord, JobState
from tidemill.model.takers import NO_WORKER, live_workers, queue_problem, task_problem
from tidemill.model.view import JobFilter

SAMPLE = 200
"""So many waiting jobs of a queue are read for the names of their tasks: the next to run."""
QUEUES_SAMPLED = 50
WAITING = (JobState.READY, JobState.SCHEDULED)


class Unserved(NamedTuple):
    """What waits in vain, and why."""

    kind: str
    """"queue" or "task"."""
    subject: str
    """The name of the queue, or of the task."""
    text: str


async def unserved(engine: Engine) -> list[Unserved]:
    """Queues with ready jobs that no live worker takes, and tasks of waiting jobs that none knows, as far as
    a bounded number of jobs shows."""
    counts = await engine.inspect.counts()
    waiting = [each.queue for each in counts if each.ready or each.scheduled]
    ready = {each.queue for each in counts if each.ready}
    if not waiting:
        return []
    workers = live_workers(await engine.members.list())
    if not workers:
        return [Unserved("queue", "", f"jobs are ready, and {NO_WORKER}")] if ready else []
    found = []
    served = []
    for queue in waiting:
        problem = queue_problem(queue, workers)
        if problem is None:
            served.append(queue)
        elif queue in ready:
            found.append(Unserved("queue", queue, problem))
    catalogue = [entry.name for entry in await engine.tasks.list()]
    for queue in served[:QUEUES_SAMPLED]:
        for task in sorted(await _tasks(engine, queue)):
            problem = task_problem(task, queue, workers, catalogue)
            if problem is not None:
                found.append(Unserved("task", task, problem))
    return found


async def problems_of(engine: Engine, jobs: Sequence[JobRecord | None]) -> list[str | None]:
    """For each job why it waits in vain; None: it does not, as far as is known."""
    if not any(job is not None and job.state in WAITING for job in jobs):
        return [None] * len(jobs)
    workers = live_workers(await engine.members.list())
    catalogue = [entry.name for entry in await engine.tasks.list()]
    return [
        queue_problem(job.queue, workers) or task_problem(job.task, job.queue, workers, catalogue)
        if job is not None and job.state in WAITING
        else None
        for job in jobs
    ]


async def _tasks(engine: Engine, queue: str) -> set[str]:
    """The tasks of some of its waiting jobs."""
    pages = [
        await engine.inspect.list(JobFilter(state=state, queue=queue), limit=SAMPLE) for state in WAITING
    ]
    return {job.task for page in pages for job in page.jobs}
