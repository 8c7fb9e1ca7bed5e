"""Penstock: a distributed task scheduler for Python.

This module is the list of public names and nothing else. What is not named here may change without notice.
Each name is imported when it is first used: `penstock --version` and a process that only starts others should
not load an event loop for it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.app.events import Events
    from penstock.app.job import Job
    from penstock.app.members import Member, MemberProcess
    from penstock.app.penstock import Penstock
    from penstock.app.schedules import ScheduleInfo, Schedules
    from penstock.app.task import Bound, Call, Task
    from penstock.model.death import DeadJob
    from penstock.model.errors import (
        AlreadyCompleted,
        BadArguments,
        BadInput,
        EngineError,
        EngineUnavailable,
        JobCancelled,
        JobFailed,
        NoCurrentJob,
        NoResult,
        NotCommitted,
        NoTransaction,
        PayloadTooLarge,
        PenstockError,
        Refused,
        ResultGone,
        ResultTimeout,
        StaleRun,
        StartupFailed,
        SyncInLoop,
        Unencodable,
        UnknownJob,
        UnknownSchedule,
        UnknownTask,
        WrongPlace,
    )
    from penstock.model.event import Event, Gap
    from penstock.model.job import Failure, JobState
    from penstock.model.member import Health
    from penstock.model.queue import Keep, Limit, Rate
    from penstock.model.retry import Retry
    from penstock.task.current import Abort, Aborted, RunningJob, current_job

__all__ = [
    "Abort",
    "Aborted",
    "AlreadyCompleted",
    "BadArguments",
    "BadInput",
    "Bound",
    "Call",
    "DeadJob",
    "EngineError",
    "EngineUnavailable",
    "Event",
    "Events",
    "Failure",
    "Gap",
    "Health",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobState",
    "Keep",
    "Limit",
    "Member",
    "MemberProcess",
    "NoCurrentJob",
    "NoResult",
    "NoTransaction",
    "NotCommitted",
    "PayloadTooLarge",
    "Penstock",
    "PenstockError",
    "Rate",
    "Refused",
    "ResultGone",
    "ResultTimeout",
    "Retry",
    "RunningJob",
    "ScheduleInfo",
    "Schedules",
    "StaleRun",
    "StartupFailed",
    "SyncInLoop",
    "Task",
    "Unencodable",
    "UnknownJob",
    "UnknownSchedule",
    "UnknownTask",
    "WrongPlace",
    "current_job",
]

_HOME = {
    "penstock.app.events": ("Events",),
    "penstock.app.job": ("Job",),
    "penstock.app.members": ("Member", "MemberProcess"),
    "penstock.app.penstock": ("Penstock",),
    "penstock.app.schedules": ("ScheduleInfo", "Schedules"),
    "penstock.app.task": ("Bound", "Call", "Task"),
    "penstock.model.death": ("DeadJob",),
    "penstock.model.errors": (
        "AlreadyCompleted",
        "BadArguments",
        "BadInput",
        "EngineError",
        "EngineUnavailable",
        "JobCancelled",
        "JobFailed",
        "NoCurrentJob",
        "NoResult",
        "NoTransaction",
        "NotCommitted",
        "PayloadTooLarge",
        "PenstockError",
        "Refused",
        "ResultGone",
        "ResultTimeout",
        "StaleRun",
        "StartupFailed",
        "SyncInLoop",
        "Unencodable",
        "UnknownJob",
        "UnknownSchedule",
        "UnknownTask",
        "WrongPlace",
    ),
    "penstock.model.event": ("Event", "Gap"),
    "penstock.model.job": ("Failure", "JobState"),
    "penstock.model.member": ("Health",),
    "penstock.model.queue": ("Keep", "Limit", "Rate"),
    "penstock.model.retry": ("Retry",),
    "penstock.task.current": ("Abort", "Aborted", "RunningJob", "current_job"),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names:
            value = getattr(import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
