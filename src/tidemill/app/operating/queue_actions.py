"""What people do with queues: the same for programs and for the command line."""

from collections.abc import Awaitable, Iterable, Mapping
from typing import Any

from tidemill.app.declaring.queue_options import read_queue_options
from tidemill.engine.protocol import Engine
from tidemill.model.errors import BadInput, Refused, UnknownQueue
from tidemill.model.names import nearest
from tidemill.model.options import unknown_option
from tidemill.model.queues.layers import AT_ENQUEUE, NAMES, Fields, field_value
from tidemill.model.view import QueueInfo

SETTABLE = tuple(name for name in NAMES if name not in AT_ENQUEUE)
"""What operators can set over what is declared."""
TRIES = 5
"""A worker of the app may start at the moment of a retirement: then the queue is read again."""
_SHORT = {"keep": ("keep_completed", "keep_cancelled")}
"""What is short for several options."""


async def find(engine: Engine, name: str) -> QueueInfo:
    """The queue, or `UnknownQueue` with the nearest name."""
    if not isinstance(name, str):
        raise BadInput(f"a queue's name is a text, not {type(name).__name__}")
    found = {each.name: each for each in await engine.queues.list()}
    if name not in found:
        raise UnknownQueue(f"there is no queue {name!r}{nearest(name, found)}")
    return found[name]


def read_settings(said: Mapping[str, Any], *, where: str) -> Fields:
    """Options as people write them, as the fields of an override; `BadInput` for what no override can be."""
    for name in said:
        check_settable(name, where=where)
    if not said:
        raise BadInput(f"{where}: say what to set, such as concurrency=5; options are {_options()}")
    return {name: field_value(value) for name, value in read_queue_options(said).items()}


def check_settable(name: str, *, where: str) -> None:
    """`BadInput` unless operators can set an option of this name."""
    if name in AT_ENQUEUE:
        raise BadInput(
            f"{where}: {name} is written into each job when it is enqueued: change it in the code that does "
            "so"
        )
    if name not in SETTABLE and name not in _SHORT:
        raise unknown_option(where, name, (*SETTABLE, *_SHORT))


async def override(
    engine: Engine, name: str, fields: Fields, *, by: str = "", why: str = "", version: int | None = None
) -> None:
    """Set these fields over what code declares."""
    await _known(engine, name, engine.queues.override(name, fields, by=by, why=why, version=version))


async def reset(
    engine: Engine,
    name: str,
    fields: Iterable[str] = (),
    *,
    by: str = "",
    version: int | None = None,
    where: str = "queues.reset",
) -> None:
    """Remove these overrides; without fields, all. `where`: what an error calls this."""
    listed = [one for field in fields for one in _SHORT.get(field, (field,))]
    if not all(field in SETTABLE for field in listed):
        overridden = (await find(engine, name)).overrides  # another release may have options of its own
        for field in listed:
            if field not in overridden:
                check_settable(field, where=where)
    await _known(engine, name, engine.queues.reset(name, listed or None, by=by, version=version))


async def retire(engine: Engine, name: str, app: str, *, by: str = "") -> None:
    """Forget what an app declares of it. That comes back with the next worker of the app."""
    for _ in range(TRIES):
        declared = (await find(engine, name)).declared
        if app not in declared:
            apps = ", ".join(sorted(declared)) or "none"
            raise Refused(
                f"the app {app!r} says nothing of the queue {name!r}{nearest(app, declared) or ';'} "
                f"apps that do: {apps}"
            )
        if await engine.queues.retire(name, app, declared_at=declared[app].declared_at, by=by):
            return
    raise Refused(f"the app {app!r} declares the queue {name!r} again all the time: workers of it start")


async def pause(engine: Engine, name: str, *, by: str = "", why: str = "") -> None:
    """Start nothing of it any more."""
    await _known(engine, name, engine.queues.pause(name, by=by, why=why))


async def resume(engine: Engine, name: str, *, by: str = "") -> None:
    """End a pause."""
    await _known(engine, name, engine.queues.resume(name, by=by))


async def _known(engine: Engine, name: str, work: Awaitable[None]) -> None:
    """Do it; where there is no such queue, the error says which is nearest."""
    try:
        await work
    except UnknownQueue:
        await find(engine, name)
        raise


def _options() -> str:
    return ", ".join((*SETTABLE, *_SHORT))
