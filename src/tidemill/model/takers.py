"""Whether a live worker will run a job that waits: workers that take its queue and know its task.

The job of a misspelt name waits for ever, and nothing fails. So it is said where it can be seen, with the
nearest name that works.
"""

from collections.abc import Iterable, Sequence

from tidemill.model.member import Health, MemberInfo, MemberRecord, knows_task
from tidemill.model.names import nearest

NO_WORKER = "no live worker is there: start one with `tidemill worker APP`"


def live_workers(members: Iterable[MemberRecord]) -> list[MemberInfo]:
    """The members that run jobs and were heard of within their lease."""
    return [one.info for one in members if one.health is not Health.GONE and "worker" in one.info.roles]


def queue_problem(queue: str, workers: Sequence[MemberInfo]) -> str | None:
    """Why no job of this queue will start; None: a live worker takes it."""
    if not workers:
        return NO_WORKER
    taken = {name for worker in workers for name in worker.queues}
    if queue in taken:
        return None
    return f"no live worker takes the queue {queue!r}{nearest(queue, sorted(taken)) or ';'} its jobs wait"


def task_problem(
    task: str, queue: str, workers: Sequence[MemberInfo], catalogue: Iterable[str]
) -> str | None:
    """Why no job of this task will start in this queue; None: a live worker may know it. `catalogue`: the
    names of the tasks that workers have published."""
    takers = [worker for worker in workers if queue in worker.queues]
    if not takers or any(knows_task(worker, task) is not False for worker in takers):
        return None
    known = [name for name in catalogue if any(knows_task(worker, name) for worker in takers)]
    return (
        f"no live worker that takes the queue {queue!r} knows the task "
        f"{task!r}{nearest(task, known) or ';'} its jobs wait"
    )
