"""`app.tasks`: the tasks that workers have published, and what operators do with them at run time."""

import builtins
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from tidemill.app.access.link import Link, Work
from tidemill.app.access.session import EngineSession
from tidemill.app.operating import task_actions
from tidemill.app.operating.who import who_acts
from tidemill.app.task import Task
from tidemill.engine.protocol import Engine
from tidemill.model.time import moment_of
from tidemill.model.view import TaskEntry

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """A task as it was when it was read."""

    name: str
    queue: str
    """Where its jobs go unless the call says otherwise."""
    priority: int
    paused_at: datetime | None
    """None: not paused."""
    paused_by: str
    paused_why: str


class Tasks:
    """Every method has an async form: `pause` and `apause`."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def list(self) -> "builtins.list[TaskInfo]":
        """All that some worker has published, by name."""
        return self._wait("list", _list)

    async def alist(self) -> "builtins.list[TaskInfo]":
        """`list` for async code."""
        return await self._run(_list)

    def pause(self, task: Task[..., Any] | str, *, by: str | None = None, why: str = "") -> None:
        """Start none of its jobs until it is resumed, in whatever queue. What runs goes on, other tasks too.
        `by`: who, else this user on this host. A task that is paused already keeps the first pause's
        reason."""
        self._wait("pause", _pause(task, by, why))

    async def apause(self, task: Task[..., Any] | str, *, by: str | None = None, why: str = "") -> None:
        """`pause` for async code."""
        await self._run(_pause(task, by, why))

    def resume(self, task: Task[..., Any] | str, *, by: str | None = None) -> None:
        """Start its jobs again, in their old order."""
        self._wait("resume", _resume(task, by))

    async def aresume(self, task: Task[..., Any] | str, *, by: str | None = None) -> None:
        """`resume` for async code."""
        await self._run(_resume(task, by))

    def _wait(self, name: str, work: Callable[[Engine], Awaitable[T]]) -> T:
        return self._link.wait(name, _on_engine(work))

    async def _run(self, work: Callable[[Engine], Awaitable[T]]) -> T:
        return await self._link.run(_on_engine(work))


def _on_engine(work: Callable[[Engine], Awaitable[T]]) -> Work[T]:
    async def go(session: EngineSession) -> T:
        return await work(session.engine)

    return go


async def _list(engine: Engine) -> list[TaskInfo]:
    return [_info(each) for each in await engine.tasks.list()]


def _pause(task: Task[..., Any] | str, by: str | None, why: str) -> Callable[[Engine], Awaitable[None]]:
    return lambda engine: task_actions.pause(engine, _name(task), by=_by(by), why=why)


def _resume(task: Task[..., Any] | str, by: str | None) -> Callable[[Engine], Awaitable[None]]:
    return lambda engine: task_actions.resume(engine, _name(task), by=_by(by))


def _name(task: Task[..., Any] | str) -> str:
    return task.name if isinstance(task, Task) else task


def _by(by: str | None) -> str:
    return who_acts("app") if by is None else by


def _info(entry: TaskEntry) -> TaskInfo:
    return TaskInfo(
        name=entry.name,
        queue=entry.queue,
        priority=entry.priority,
        paused_at=None if entry.paused_at is None else moment_of(entry.paused_at),
        paused_by=entry.paused_by,
        paused_why=entry.paused_why,
    )
