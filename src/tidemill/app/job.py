"""A job, seen from outside: one requested run, wherever it runs."""

import asyncio
from typing import Generic, TypeVar
from uuid import UUID

import msgspec

from tidemill.app.link import Link, Work
from tidemill.app.session import Session
from tidemill.model import job as model
from tidemill.model.errors import BadResult, JobCancelled, JobFailed, ResultGone, ResultTimeout, UnknownJob
from tidemill.model.ids import JobId, new_id, show_id
from tidemill.model.job import LIVE, CancelAnswer, JobState, ReplayAnswer
from tidemill.task.definition import Definition

R_co = TypeVar("R_co", covariant=True)


class Job(Generic[R_co]):
    """A handle. It holds an id and, after `refresh`, what was known then; it never does I/O by itself."""

    __slots__ = ("_definition", "_id", "_link", "_record", "_task")

    def __init__(
        self, link: Link, job_id: JobId, task: str = "", definition: Definition | None = None
    ) -> None:
        self._link = link
        self._id = job_id
        self._task = task
        self._definition = definition
        self._record: model.Job | None = None

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
        """The task's name; empty for a handle made from an id alone, until it is refreshed."""
        return self._task

    @property
    def record(self) -> model.Job | None:
        """Everything that was known at the last `refresh` (or when its end was awaited)."""
        return self._record

    @property
    def state(self) -> JobState | None:
        """The state at the last `refresh`; None before the first. Never hidden I/O."""
        return None if self._record is None else self._record.state

    def refresh(self) -> model.Job:
        """Ask the engine; `UnknownJob` if it has no such job (any more)."""
        return self._keep(self._link.wait("refresh", self._get))

    async def arefresh(self) -> model.Job:
        """Ask the engine; `UnknownJob` if it has no such job (any more)."""
        return self._keep(await self._link.run(self._get))

    def result(self, timeout: float | None = None) -> R_co:
        """Wait for the end and return what the function returned.

        `JobFailed` (with the remote traceback), `JobCancelled`, `ResultGone`, `UnknownJob`; `ResultTimeout`
        after `timeout` seconds: the job goes on."""
        return self._result_of(self._link.wait("result", self._ended(timeout)))

    async def aresult(self, timeout: float | None = None) -> R_co:
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

    async def _get(self, session: Session) -> model.Job | None:
        (record,) = await session.engine.inspect.get([self._id])
        return record

    def _ended(self, timeout: float | None) -> Work[model.Job | None]:
        async def wait(session: Session) -> model.Job | None:
            if timeout is not None and timeout <= 0:  # only look
                (found,) = await session.engine.jobs.watch([self._id], waiter="", ttl=0)
                if found is None or found.state not in LIVE:
                    return found
            try:
                async with asyncio.timeout(timeout):
                    return await session.waiter.ended(self._id)
            except TimeoutError:
                raise ResultTimeout(f"{self!r} has not ended within {timeout} s; it goes on") from None

        return wait

    async def _cancel(self, session: Session) -> CancelAnswer:
        (answer,) = await session.engine.jobs.cancel([self._id])
        return answer

    def _replaying(self) -> Work[ReplayAnswer]:
        token = new_id()  # one wish: a repeat after a lost reply does not replay twice

        async def replay(session: Session) -> ReplayAnswer:
            (answer,) = await session.engine.jobs.replay([self._id], token=token)
            return answer

        return replay

    def _keep(self, record: model.Job | None) -> model.Job:
        if record is None:
            raise UnknownJob(f"there is no job {self.id}: never enqueued here, dropped, or no longer kept")
        self._record = record
        self._task = record.task
        return record

    def _result_of(self, found: model.Job | None) -> R_co:
        record = self._keep(found)
        if record.state is JobState.DEAD:
            raise JobFailed(_last_words(record), record.error)
        if record.state is JobState.CANCELLED:
            raise JobCancelled(f"{self!r} was cancelled")
        if record.result is None and record.body is None:
            raise ResultGone(f"{self!r} completed, but the queue {record.queue!r} keeps no results")
        value: R_co
        try:
            if self._definition is not None:
                value = self._definition.signature.decode_result(record.result)
            else:
                value = None if record.result is None else msgspec.json.decode(record.result)  # type: ignore[assignment]
        except (msgspec.DecodeError, ValueError, TypeError) as error:
            raise BadResult(f"the result of {self!r} does not fit {self._task} here: {error}") from None
        return value


def _last_words(record: model.Job) -> str:
    attempts = f"{record.attempts} of {record.max_attempts} attempts"
    head = f"{record.task} {show_id(record.id)} is dead after {attempts}"
    failure = record.error
    if failure is None:
        return head
    text = f"{head}: {failure.error or failure.kind}: {failure.message}"
    return f"{text}\n\nThe traceback of the worker:\n{failure.traceback}" if failure.traceback else text
