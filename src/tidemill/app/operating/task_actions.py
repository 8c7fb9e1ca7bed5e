"""What people do with tasks: the same for programs and for the command line."""

from collections.abc import Awaitable

from tidemill.engine.protocol import Engine
from tidemill.model.errors import BadInput, UnknownTask
from tidemill.model.names import nearest
from tidemill.model.view import TaskEntry


async def find(engine: Engine, name: str) -> TaskEntry:
    """The task as workers have published it, or `UnknownTask` with the nearest name."""
    found = {each.name: each for each in await engine.tasks.list()}
    if name not in found:
        raise UnknownTask(f"no worker has published a task {name!r}{nearest(name, found)}")
    return found[name]


async def pause(engine: Engine, name: str, *, by: str = "", why: str = "") -> None:
    """Start none of its jobs any more."""
    await _known(engine, name, engine.tasks.pause(_check_name(name), by=by, why=why))


async def resume(engine: Engine, name: str, *, by: str = "") -> None:
    """End a pause."""
    await _known(engine, name, engine.tasks.resume(_check_name(name), by=by))


def _check_name(name: str) -> str:
    if not isinstance(name, str):
        raise BadInput(f"a task is named by a text or by the task itself, not by {type(name).__name__}")
    return name


async def _known(engine: Engine, name: str, work: Awaitable[None]) -> None:
    """Do it; where there is no such task, the error says which is nearest."""
    try:
        await work
    except UnknownTask:
        await find(engine, name)
        raise
