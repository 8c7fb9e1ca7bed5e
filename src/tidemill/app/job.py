"""A job, seen from outside: one requested run, wherever it runs."""

import asyncio
from typing import Generic, TypeVar
from uuid import UUID

import msgspec

from tidemill.app.access.link import Link, Work
from tidemill.app.access.session import EngineSession
from tidemill.app.enqueueing.options import Seconds, read_seconds
from tidemill.app.reading.job_info import JobInfo, info_of
from tidemill.app.reading.why_info import ReasonInfo, reason_info
from tidemill.model.errors import BadResult, JobCancelled, JobFailed, ResultGone, ResultTimeout, UnknownJob
from tidemill.model.ids import JobId, new_id, show_id
from tidemill.model.jobs import job as model
from tidemill.model.jobs.job import LIVE, CancelAnswer, JobState, ReplayAnswer
from tidemill.model.time import SECOND
from tidemill.model.why.facts import WhyFacts
from tidemill.model.why.reasons import reasons_of
from tidemill.task.definition import Definition

R_co = TypeVar("R_co", covariant=True)


class Job(Generic[R_co]):
    """A handle. It holds an id; its properties never do I/O, its methods always do."""

    __slots__ = ("_created", "_definition", "_id", "_link", "_record", "_task")

    def __init__(
        self,
        link: Link,
        job_id: JobId,
        task: str = "",
        definition: Definition | None = None,
        *,
        created: bool | None = None,
    ) -> None:
        self._created = created
        self._link = link
        self._id = job_id
        self._task = task
        self._definition = definition
        self._record: model.JobRecord | None = None

    def __repr__(self) -> str:
        state = "" if self._record is None else f" {self._record.state.value}"
        return f"<Job {self._task or 'of an unknown task'} {self.id}{state}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and other._id == self._id

    def __hash__(self) -> int:
        return hash(self._id)

    @property
    def id(self) -> str:
        """As people see it; `uuid` is the same as an object."""
        return show_id(self._id)

    @property
    def uuid(self) -> UUID:
        return UUID(bytes=self._id)

    @property
    def task(self) -> str:
        """The task's name; empty for a handle made from an id alone, until `info` or `result` was called."""
        return self._task

    @property
    def created(self) -> bool | None:
        """Whether the call that gave this handle has stored the job; False: it was there already, by its id
        or by its unique key. None: the handle comes from no enqueue."""
        return self._created

    @property
    def state(self) -> JobState | None:
        """The state when `info` or `result` last answered; None before the first. Never hidden I/O."""
        return None if self._record is None else self._record.state

    def info(self) -> JobInfo[R_co]:
        """Ask what is known of it now: state, times, attempts, arguments, result, error. `UnknownJob` if the
        engine has no such job (any more)."""
        return self._info_of(self._link.wait("info", self._get))

    async def ainfo(self) -> JobInfo[R_co]:
        """`info` for async code."""
        return self._info_of(await self._link.run(self._get))

    def why(self) -> list[ReasonInfo]:
        """Ask why it is not running: what holds it back comes first; "ready" if nothing does. A job that runs
        or has ended says so: there is always a reason. `UnknownJob` if there is no such job (any more)."""
        return self._reasons_of(self._link.wait("why", self._facts))

    async def awhy(self) -> list[ReasonInfo]:
        """`why` for async code."""
        return self._reasons_of(await self._link.run(self._facts))

    def result(self, timeout: Seconds | None = None) -> R_co:
        """Wait for the end and return what the function returned.

        `JobFailed` (with the remote traceback), `JobCancelled`, `ResultGone`, `UnknownJob`; `ResultTimeout`
        after `timeout` seconds (or a timedelta): the job goes on. `timeout=0` does not wait: it gives the
        result of a job that has ended, and is `ResultTimeout` at once for one that has not."""
        return self._result_of(self._link.wait("result", self._ended(timeout)))

    async def aresult(self, timeout: Seconds | None = None) -> R_co:
        """`result` for async code."""
        return self._result_of(await self._link.run(self._ended(timeout)))

    def cancel(self) -> CancelAnswer:
        """Stop it: a job that has not started never starts, a running one is told to stop."""
        return self._link.wait("cancel", self._cancel)

    async def acancel(self) -> CancelAnswer:
        """`cancel` for async code."""
        return await self._link.run(self._cancel)

    def replay(self) -> ReplayAnswer:
        """Run a finished job again, from its first attempt."""
        return self._link.wait("replay", self._replaying())

    async def areplay(self) -> ReplayAnswer:
        """`replay` for async code."""
        return await self._link.run(self._replaying())

    async def _get(self, session: EngineSession) -> model.JobRecord | None:
        (record,) = await session.engine.inspect.get([self._id])
        return record

    async def _facts(self, session: EngineSession) -> WhyFacts | None:
        (facts,) = await session.engine.inspect.why([self._id])
        return facts

    def _ended(self, timeout: Seconds | None) -> Work[model.JobRecord | None]:
        seconds = None if timeout is None else read_seconds("timeout", timeout) / SECOND

        async def wait(session: EngineSession) -> model.JobRecord | None:
            if seconds == 0:
                (found,) = await session.engine.jobs.watch([self._id], waiter="", ttl=0)
                if found is None or found.state not in LIVE:
                    return found
                raise ResultTimeout(f"{self!r} has not ended; it goes on")
            try:
                async with asyncio.timeout(seconds):
                    return await session.waiter.ended(self._id)
            except TimeoutError:
                raise ResultTimeout(f"{self!r} has not ended within {seconds} s; it goes on") from None

        return wait

    async def _cancel(self, session: EngineSession) -> CancelAnswer:
        (answer,) = await session.engine.jobs.cancel([self._id])
        return answer

    def _replaying(self) -> Work[ReplayAnswer]:
        token = new_id()  # one wish: a repeat after a lost reply does not replay twice

        async def replay(session: EngineSession) -> ReplayAnswer:
            (answer,) = await session.engine.jobs.replay([self._id], token=token)
            return answer

        return replay

    def _reasons_of(self, facts: WhyFacts | None) -> list[ReasonInfo]:
        if facts is None:
            raise self._unknown()
        return [reason_info(reason) for reason in reasons_of(facts)]

    def _unknown(self) -> UnknownJob:
        return UnknownJob(f"there is no job {self.id}: never enqueued here, dropped, or no longer kept")

    def _keep(self, record: model.JobRecord | None) -> model.JobRecord:
        if record is None:
            raise self._unknown()
        self._record = record
        self._task = record.task
        return record

    def _result_of(self, found: model.JobRecord | None) -> R_co:
        record = self._keep(found)
        if record.state is JobState.DEAD:
            raise JobFailed(_last_words(record), record.error)
        if record.state is JobState.CANCELLED:
            raise JobCancelled(f"{self!r} was cancelled")
        if record.result is None and record.body is None:
            raise ResultGone(f"{self!r} completed, but the queue {record.queue!r} keeps no results")
        return self._decoded(record)

    def _info_of(self, found: model.JobRecord | None) -> JobInfo[R_co]:
        record = self._keep(found)
        result = self._decoded(record) if record.state is JobState.COMPLETED else None
        return info_of(record, self._definition, result)

    def _decoded(self, record: model.JobRecord) -> R_co:
        value: R_co
        try:
            if self._definition is not None:
                value = self._definition.signature.decode_result(record.result)
            else:
                value = None if record.result is None else msgspec.json.decode(record.result)  # type: ignore[assignment]
        except (msgspec.DecodeError, ValueError, TypeError) as error:
            raise BadResult(f"the result of {self!r} does not fit {self._task} here: {error}") from None
        return value


def _last_words(record: model.JobRecord) -> str:
    attempts = f"{record.attempts} of {record.max_attempts} attempts"
    head = f"{record.task} {show_id(record.id)} is dead after {attempts}"
    failure = record.error
    if failure is None:
        return head
    text = f"{head}: {failure.error or failure.kind}: {failure.message}"
    return f"{text}\n\nThe traceback of the worker:\n{failure.traceback}" if failure.traceback else text
