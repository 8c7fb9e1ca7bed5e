"""Whether a live worker will run a job that waits."""

import pytest

from tidemill.model.ids import new_id
from tidemill.model.member import (
    TASKS_LIMIT,
    Health,
    MemberInfo,
    MemberRecord,
    knows_task,
    marks_of_tasks,
)
from tidemill.model.takers import NO_WORKER, live_workers, queue_problem, task_problem


def a_worker(*tasks: str, queues: tuple[str, ...] = ("email",), said: bool = True) -> MemberInfo:
    return MemberInfo(id=new_id(), name="m", queues=queues, tasks=marks_of_tasks(tasks) if said else None)


def record(info: MemberInfo, health: Health = Health.HEALTHY) -> MemberRecord:
    return MemberRecord(info=info, since=0, heartbeat_at=0, steady_since=0, health=health, running=0)


def test_marks_say_which_tasks_are_known_and_which_are_not() -> None:
    names = [f"shop.task_{n}" for n in range(500)]
    info = a_worker(*names)
    assert len(info.tasks or b"") == 4 * 500
    assert all(knows_task(info, name) for name in names)
    assert not any(knows_task(info, f"shop.other_{n}") for n in range(500))
    assert knows_task(a_worker(), "shop.mail") is False
    assert knows_task(a_worker(said=False), "shop.mail") is None


def test_too_many_tasks_are_not_said() -> None:
    assert marks_of_tasks(f"t{n}" for n in range(TASKS_LIMIT + 1)) is None


def test_only_live_members_that_run_jobs_count() -> None:
    worker, gone = a_worker(), a_worker()
    controller = MemberInfo(id=new_id(), name="c", roles=("controller",))
    members = [record(worker, Health.LATE), record(gone, Health.GONE), record(controller)]
    assert live_workers(members) == [worker]


@pytest.mark.parametrize(
    ("queue", "answer"),
    [
        ("email", None),
        ("emial", "no live worker takes the queue 'emial'; did you mean 'email'? its jobs wait"),
        ("video", "no live worker takes the queue 'video'; its jobs wait"),
    ],
)
def test_a_queue_that_nobody_takes(queue: str, answer: str | None) -> None:
    assert queue_problem(queue, [a_worker()]) == answer
    assert queue_problem(queue, []) == NO_WORKER


def test_a_task_that_nobody_has() -> None:
    workers = [a_worker("shop.send"), a_worker("shop.sned", queues=("other",))]
    catalogue = ["shop.sned", "shop.send", "shop.old"]
    assert task_problem("shop.send", "email", workers, catalogue) is None
    problem = task_problem("shop.sned", "email", workers, catalogue)
    assert problem is not None
    assert "knows the task 'shop.sned'; did you mean 'shop.send'? its jobs wait" in problem
    assert task_problem("shop.sned", "nobody", workers, catalogue) is None  # the queue is the problem
    assert task_problem("shop.sned", "email", [*workers, a_worker(said=False)], catalogue) is None
