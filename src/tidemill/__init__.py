"""Tidemill: a distributed task scheduler for Python.

This module is the list of public names and nothing else. What is not named here may change without notice.
Each name is imported when it is first used: `tidemill --version` and a process that only starts others should
not load an event loop for it.
"""

from typing import TYPE_CHECKING, Any

from tidemill.model.version import __version__ as __version__

if TYPE_CHECKING:
    from tidemill.app.job import Job
    from tidemill.app.operating.queues import Overridden, Queue, Queues
    from tidemill.app.operating.schedules import ScheduleInfo, Schedules
    from tidemill.app.operating.tasks import TaskInfo, Tasks
    from tidemill.app.reading.events import Events
    from tidemill.app.reading.job_info import FailureInfo, JobInfo
    from tidemill.app.reading.members import Member, MemberProcess
    from tidemill.app.reading.why_info import HolderInfo, ReasonInfo
    from tidemill.app.task import Bound, Call, Task
    from tidemill.app.tidemill import Tidemill
    from tidemill.model.errors import (
        AlreadyCompleted,
        BadArguments,
        BadInput,
        EngineError,
        EngineUnavailable,
        IdTaken,
        JobCancelled,
        JobFailed,
        NoCurrentJob,
        NoResult,
        NotCommitted,
        NoTransaction,
        NotUnique,
        PayloadTooLarge,
        QueueChanged,
        Refused,
        ResultGone,
        ResultTimeout,
        SnoozesUsedUp,
        StaleRun,
        StartupFailed,
        SyncInLoop,
        TidemillError,
        Unencodable,
        UnknownJob,
        UnknownQueue,
        UnknownSchedule,
        UnknownTask,
        WrongPlace,
    )
    from tidemill.model.event import Event, Gap
    from tidemill.model.jobs.death import DeadJob
    from tidemill.model.jobs.job import Failure, JobState
    from tidemill.model.jobs.retry import Retry
    from tidemill.model.member import Health
    from tidemill.model.queues.queue import Keep, Limit, QueueOptions, Rate
    from tidemill.model.why.reasons import Opens, ReasonKind
    from tidemill.task.current import Abort, Aborted, RunningJob, current_job
    from tidemill.task.later import RetryAfter, Snooze

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
    "FailureInfo",
    "Gap",
    "Health",
    "HolderInfo",
    "IdTaken",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobInfo",
    "JobState",
    "Keep",
    "Limit",
    "Member",
    "MemberProcess",
    "NoCurrentJob",
    "NoResult",
    "NoTransaction",
    "NotCommitted",
    "NotUnique",
    "Opens",
    "Overridden",
    "PayloadTooLarge",
    "Queue",
    "QueueChanged",
    "QueueOptions",
    "Queues",
    "Rate",
    "ReasonInfo",
    "ReasonKind",
    "Refused",
    "ResultGone",
    "ResultTimeout",
    "Retry",
    "RetryAfter",
    "RunningJob",
    "ScheduleInfo",
    "Schedules",
    "Snooze",
    "SnoozesUsedUp",
    "StaleRun",
    "StartupFailed",
    "SyncInLoop",
    "Task",
    "TaskInfo",
    "Tasks",
    "Tidemill",
    "TidemillError",
    "Unencodable",
    "UnknownJob",
    "UnknownQueue",
    "UnknownSchedule",
    "UnknownTask",
    "WrongPlace",
    "current_job",
]

_HOME = {
    "tidemill.app.reading.events": ("Events",),
    "tidemill.app.job": ("Job",),
    "tidemill.app.reading.job_info": ("FailureInfo", "JobInfo"),
    "tidemill.app.reading.why_info": ("HolderInfo", "ReasonInfo"),
    "tidemill.model.why.reasons": ("Opens", "ReasonKind"),
    "tidemill.app.reading.members": ("Member", "MemberProcess"),
    "tidemill.app.tidemill": ("Tidemill",),
    "tidemill.app.operating.queues": ("Overridden", "Queue", "Queues"),
    "tidemill.app.operating.schedules": ("ScheduleInfo", "Schedules"),
    "tidemill.app.operating.tasks": ("TaskInfo", "Tasks"),
    "tidemill.app.task": ("Bound", "Call", "Task"),
    "tidemill.model.jobs.death": ("DeadJob",),
    "tidemill.model.errors": (
        "AlreadyCompleted",
        "BadArguments",
        "BadInput",
        "EngineError",
        "EngineUnavailable",
        "IdTaken",
        "JobCancelled",
        "JobFailed",
        "NoCurrentJob",
        "NoResult",
        "NoTransaction",
        "NotCommitted",
        "NotUnique",
        "PayloadTooLarge",
        "QueueChanged",
        "TidemillError",
        "Refused",
        "ResultGone",
        "ResultTimeout",
        "SnoozesUsedUp",
        "StaleRun",
        "StartupFailed",
        "SyncInLoop",
        "Unencodable",
        "UnknownJob",
        "UnknownQueue",
        "UnknownSchedule",
        "UnknownTask",
        "WrongPlace",
    ),
    "tidemill.model.event": ("Event", "Gap"),
    "tidemill.model.jobs.job": ("Failure", "JobState"),
    "tidemill.model.member": ("Health",),
    "tidemill.model.queues.queue": ("Keep", "Limit", "QueueOptions", "Rate"),
    "tidemill.model.jobs.retry": ("Retry",),
    "tidemill.task.current": ("Abort", "Aborted", "RunningJob", "current_job"),
    "tidemill.task.later": ("RetryAfter", "Snooze"),
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    for module, names in _HOME.items():
        if name in names:
            value = getattr(import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'tidemill' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
