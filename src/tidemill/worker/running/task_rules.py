"""Task rules: what holds for one task in one queue. Precedence is job > task > queue > app.

Resolved once and kept: a worker that runs a million jobs of three tasks resolves three times.
"""

import msgspec

from tidemill.model.jobs.job import Failure
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.run import ClaimedJob
from tidemill.model.time import Span, span_of
from tidemill.task.definition import Definition
from tidemill.task.failures import lineage
from tidemill.task.registry import Registry

TIMEOUT_LINEAGE = lineage(TimeoutError())
"""To the retry policy a timeout is a TimeoutError."""


class TaskRules:
    """A task's code, and the rules for its jobs that say nothing themselves."""

    __slots__ = ("decode", "definition", "encode_result", "function", "retry", "runs_in", "timeout")

    def __init__(self, definition: Definition, timeout: Span | None, retry: Retry) -> None:
        self.definition = definition
        self.function = definition.function
        self.decode = definition.decode
        self.encode_result = definition.encode_result
        self.runs_in = definition.runs_in
        self.timeout = timeout
        self.retry = retry

    def retry_in(self, job: ClaimedJob, ancestry: list[str]) -> Span | None:
        """The wait before the next attempt, after this one ended by such an exception; None: no more."""
        policy = job.retry or self.retry
        if policy.attempts != job.max_attempts:
            policy = msgspec.structs.replace(policy, attempts=job.max_attempts)
        return policy.wait(job.attempt) if policy.retries(job.attempt, ancestry) else None

    def retry_after(self, job: ClaimedJob, delay: Span) -> Span | None:
        """The wait that the code itself asked for; None: that was the last attempt."""
        return delay if job.attempt < job.max_attempts else None

    def snoozes(self, job: ClaimedJob) -> int:
        """How often this job may snooze."""
        return (job.retry or self.retry).snoozes


class TaskRulesBook:
    """The rules of every task in every queue that has come by."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[tuple[str, str], TaskRules] = {}
        registry.on_replaced.append(self._known.clear)

    def of(self, job: ClaimedJob) -> TaskRules | None:
        """None: this app has no such task."""
        return self._known.get((job.task, job.queue)) or self._resolve(job)

    def _resolve(self, job: ClaimedJob) -> TaskRules | None:
        definition = self._registry.find(job.task)
        if definition is None:
            return None
        queue = self._registry.options_of(job.queue)
        queue_timeout = None if queue.timeout is None else span_of(queue.timeout)
        rules = TaskRules(
            definition,
            definition.timeout or queue_timeout or self._registry.timeout,
            definition.retry or queue.retry or self._registry.retry,
        )
        self._known[job.task, job.queue] = rules
        return rules


def timeout_failure(timeout: Span, where: str = "") -> Failure:
    """The record of an attempt that ran too long. `where`: the traceback of the place it had reached."""
    return Failure(
        kind="timeout",
        error=TIMEOUT_LINEAGE[0],
        message=f"ran longer than its timeout of {timeout / 1e6:g} s",
        traceback=where,
    )
