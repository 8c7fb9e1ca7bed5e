"""Runs for tests of pure parts."""

from typing import Any, cast

from tidemill.model.ids import new_id
from tidemill.model.jobs.run import ClaimedJob
from tidemill.task.current import ControlledJob
from tidemill.task.definition import Definition
from tidemill.task.registry import Registry
from tidemill.worker.running.notes import Notebook
from tidemill.worker.running.run import Run
from tidemill.worker.running.task_rules import TaskRulesBook


def a_job(fence: int = 1, **fields: Any) -> ClaimedJob:
    """A claimed job; every field may be given."""
    known: dict[str, Any] = {
        "id": new_id(),
        "fence": fence,
        "seq": fence,
        "task": "task",
        "queue": "default",
        "priority": 5,
        "attempt": 1,
        "max_attempts": 5,
        "codec": 1,
        "body": b"[[],{}]",
        "headers": None,
        "key": None,
        "timeout": None,
        "retry": None,
        "created_at": 0,
        "ready_at": 0,
        "crashes": 0,
        "suspect": False,
        "limited": False,
        "on_dead": None,
        "schedule": None,
    }
    return ClaimedJob(**{**known, **fields})


def a_run(fence: int = 1, *, registry: Registry | None = None, row: int = 0, **fields: Any) -> Run:
    """A run that is about to start."""
    run = Run(a_job(fence, **fields), row, cast(Notebook, None))
    rules = TaskRulesBook(registry or a_registry()).of(run.job)
    assert rules is not None
    run.rules = rules
    run.running = ControlledJob(run.job, run)
    return run


def a_registry(**options: Any) -> Registry:
    """An app with one task, named "task"."""

    async def task() -> Any: ...

    registry = Registry()
    registry.add(Definition(task, name="task", **options))
    return registry
