"""Penstock: a distributed task scheduler for Python.

This module is the list of public names and nothing else. What is not named here may change without notice.
"""

from penstock.app.job import Job
from penstock.app.penstock import Penstock
from penstock.app.task import Bound, Call, Task
from penstock.model.errors import (
    BadArguments,
    BadInput,
    EngineError,
    EngineUnavailable,
    JobCancelled,
    JobFailed,
    NoCurrentJob,
    NoResult,
    PayloadTooLarge,
    PenstockError,
    Refused,
    ResultGone,
    ResultTimeout,
    SyncInLoop,
    Unencodable,
    UnknownJob,
    UnknownTask,
)
from penstock.model.job import JobState
from penstock.model.queue import Keep, Limit, Rate
from penstock.model.retry import Retry
from penstock.task.current import Abort, Aborted, RunningJob, current_job

__all__ = [
    "Abort",
    "Aborted",
    "BadArguments",
    "BadInput",
    "Bound",
    "Call",
    "EngineError",
    "EngineUnavailable",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobState",
    "Keep",
    "Limit",
    "NoCurrentJob",
    "NoResult",
    "PayloadTooLarge",
    "Penstock",
    "PenstockError",
    "Rate",
    "Refused",
    "ResultGone",
    "ResultTimeout",
    "Retry",
    "RunningJob",
    "SyncInLoop",
    "Task",
    "Unencodable",
    "UnknownJob",
    "UnknownTask",
    "current_job",
]
