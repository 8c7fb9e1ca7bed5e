"""`app.queues`: all queues as the engine has them, and what operators change about them at run time."""

import builtins
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from tidemill.app.access.link import Link, Work
from tidemill.app.access.session import EngineSession
from tidemill.app.operating import queue_actions
from tidemill.app.operating.who import who_acts
from tidemill.engine.protocol import Engine
from tidemill.model.errors import BadInput
from tidemill.model.queues.layers import Layers, declared_fields, read_fields, read_value
from tidemill.model.queues.queue import Keep, QueueOptions, Rate
from tidemill.model.time import moment_of
from tidemill.model.view import QueueInfo

if TYPE_CHECKING:
    from tidemill.app.declaring.declarations import LimitLike
    from tidemill.app.task import Task

T = TypeVar("T")


class QueueSettings(TypedDict, total=False):
    """What can be set over what code declares, with the meaning that it has in `app.queue`. None says "no
    limit"."""

    concurrency: int | None
    rate: str | Rate | None
    per_key: "LimitLike | None"
    limits: "Mapping[str, LimitLike | None] | None"
    per_task: "Mapping[Task[..., Any] | str, LimitLike] | None"
    per_worker: "LimitLike | None"
    fair_by: str | None
    weights: Mapping[str, int] | None
    keep: int | Keep | None
    keep_completed: int | Keep | None
    keep_dead: int | Keep | None
    keep_cancelled: int | Keep | None
    keep_body: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Overridden:
    """One option that an operator has set."""

    value: Any
    by: str
    why: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A queue as it was when it was read."""

    name: str
    options: QueueOptions
    """In force: what operators have set, over what code declares."""
    declared: QueueOptions
    """What the code of all apps declares."""
    apps: tuple[str, ...]
    """The apps whose code declares it."""
    overrides: dict[str, Overridden]
    """What operators have set, by option."""
    paused_at: datetime | None
    paused_by: str
    paused_why: str
    created_at: datetime
    version: int
    """Grows with every change; `set` and `reset` take it, to change only what was read."""
    problems: tuple[str, ...]
    """What had to be left out of the options."""


class Queues:
    """Every method has an async form: `set` and `aset`."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def list(self) -> "builtins.list[Queue]":
        """All of them, by name."""
        return self._wait("list", _list)

    async def alist(self) -> "builtins.list[Queue]":
        """`list` for async code."""
        return await self._run(_list)

    def get(self, name: str) -> Queue:
        """One of them; `UnknownQueue` if there is none."""
        return self._wait("get", _get(name))

    async def aget(self, name: str) -> Queue:
        """`get` for async code."""
        return await self._run(_get(name))

    def set(
        self,
        name: str,
        *,
        by: str | None = None,
        why: str = "",
        version: int | None = None,
        **settings: Unpack[QueueSettings],
    ) -> None:
        """Set options over what code declares, until they are reset: `set("email", concurrency=2, why="their
        server is slow")`. Other options stay as they are. In force for the next claim anywhere, and in
        running workers within a second. `by`: who, else this user on this host. `version`: `QueueChanged`
        unless the queue has this one."""
        self._wait("set", _set(name, settings, by, why, version))

    async def aset(
        self,
        name: str,
        *,
        by: str | None = None,
        why: str = "",
        version: int | None = None,
        **settings: Unpack[QueueSettings],
    ) -> None:
        """`set` for async code."""
        await self._run(_set(name, settings, by, why, version))

    def reset(self, name: str, *options: str, by: str | None = None, version: int | None = None) -> None:
        """Remove what was set of these options, or of all: what code declares counts again."""
        self._wait("reset", _reset(name, options, by, version))

    async def areset(
        self, name: str, *options: str, by: str | None = None, version: int | None = None
    ) -> None:
        """`reset` for async code."""
        await self._run(_reset(name, options, by, version))

    def retire(self, name: str, app: str, *, by: str | None = None) -> None:
        """Forget what an app that is gone for good declares of a queue: `retire("email", "shop.tasks:app")`.
        While workers of other apps live, nothing tells it from an app that is only down. A worker of that app
        declares it again when it starts."""
        self._wait("retire", lambda engine: queue_actions.retire(engine, name, app, by=_by(by)))

    async def aretire(self, name: str, app: str, *, by: str | None = None) -> None:
        """`retire` for async code."""
        await self._run(lambda engine: queue_actions.retire(engine, name, app, by=_by(by)))

    def pause(self, name: str, *, by: str | None = None, why: str = "") -> None:
        """Start none of its jobs until it is resumed. What runs goes on. A queue that is paused already keeps
        the first pause's reason."""
        self._wait("pause", lambda engine: queue_actions.pause(engine, name, by=_by(by), why=why))

    async def apause(self, name: str, *, by: str | None = None, why: str = "") -> None:
        """`pause` for async code."""
        await self._run(lambda engine: queue_actions.pause(engine, name, by=_by(by), why=why))

    def resume(self, name: str, *, by: str | None = None) -> None:
        """Start its jobs again."""
        self._wait("resume", lambda engine: queue_actions.resume(engine, name, by=_by(by)))

    async def aresume(self, name: str, *, by: str | None = None) -> None:
        """`resume` for async code."""
        await self._run(lambda engine: queue_actions.resume(engine, name, by=_by(by)))

    def _wait(self, name: str, work: Callable[[Engine], Awaitable[T]]) -> T:
        return self._link.wait(name, _on_engine(work))

    async def _run(self, work: Callable[[Engine], Awaitable[T]]) -> T:
        return await self._link.run(_on_engine(work))


def _on_engine(work: Callable[[Engine], Awaitable[T]]) -> Work[T]:
    async def go(session: EngineSession) -> T:
        return await work(session.engine)

    return go


async def _list(engine: Engine) -> list[Queue]:
    return [_queue(each) for each in await engine.queues.list()]


def _get(name: str) -> Callable[[Engine], Awaitable[Queue]]:
    async def get(engine: Engine) -> Queue:
        return _queue(await queue_actions.find(engine, name))

    return get


def _set(
    name: str, settings: Mapping[str, Any], by: str | None, why: str, version: int | None
) -> Callable[[Engine], Awaitable[None]]:
    fields = queue_actions.read_settings(settings, where="queues.set")
    return lambda engine: queue_actions.override(engine, name, fields, by=_by(by), why=why, version=version)


def _reset(
    name: str, options: tuple[str, ...], by: str | None, version: int | None
) -> Callable[[Engine], Awaitable[None]]:
    for option in options:
        if not isinstance(option, str):
            raise BadInput(f"queues.reset takes the names of options, not {type(option).__name__}")
    return lambda engine: queue_actions.reset(engine, name, options, by=_by(by), version=version)


def _by(by: str | None) -> str:
    return who_acts("app") if by is None else by


def _queue(found: QueueInfo) -> Queue:
    declared = declared_fields(Layers(declared=found.declared))
    return Queue(
        name=found.name,
        options=found.options,
        declared=read_fields(declared).options,
        apps=tuple(sorted(app for app, each in found.declared.items() if each.declares)),
        overrides={
            name: Overridden(
                value=read_value(name, each.value), by=each.by, why=each.why, at=moment_of(each.at)
            )
            for name, each in sorted(found.overrides.items())
        },
        paused_at=None if found.paused_at is None else moment_of(found.paused_at),
        paused_by=found.paused_by,
        paused_why=found.paused_why,
        created_at=moment_of(found.created_at),
        version=found.version,
        problems=found.problems,
    )
