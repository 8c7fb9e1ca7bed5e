"""What the decorators of schedules do: `@app.cron`, `@app.every`, `@app.on_startup`, above `@app.task`.

They return the same task. Nothing is written when they are read: workers publish what their code declares
when they start.
"""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec

from tidemill.app.enqueueing.options import Seconds
from tidemill.model.errors import BadInput
from tidemill.model.jobs.job import NewJob
from tidemill.model.schedules.schedule import (
    WAITING_LIMIT,
    Cron,
    Every,
    Missed,
    Overlap,
    Schedule,
    Startup,
    Timing,
    check_schedule,
)
from tidemill.model.time import SECOND, Instant, instant_of, span_of
from tidemill.task.registry import Registry

if TYPE_CHECKING:
    from tidemill.app.task import Task

TaskT = TypeVar("TaskT", bound="Task[..., Any]")


def cron(fields: str, *, tz: str, jitter: Seconds, start: datetime | None, end: datetime | None) -> Cron:
    """The timing, or `BadInput`."""
    if not isinstance(fields, str):
        raise BadInput(f'cron takes its fields in one string, "0 3 * * sun", not {type(fields).__name__}')
    if not isinstance(tz, str):
        raise BadInput(f'tz= takes the name of a time zone, "Europe/Berlin", not {type(tz).__name__}')
    first, last = _instant(start), _instant(end)
    return Cron(fields=fields, tz=tz, jitter=_seconds(jitter), start=first, end=last).check()


def every(seconds: Seconds, *, jitter: Seconds, start: datetime | None, end: datetime | None) -> Every:
    """The timing, or `BadInput`."""
    return Every(seconds=_seconds(seconds), jitter=_seconds(jitter), start=_instant(start), end=_instant(end))


def decorator(
    registry: Registry,
    timing: Timing,
    *,
    name: str | None,
    missed: Missed = "once",
    overlap: Overlap = "skip",
    waiting: int = WAITING_LIMIT,
    keep: int | None = None,
) -> Callable[[TaskT], TaskT]:
    """Declares a schedule of the task that it is given."""

    def declare(task: TaskT) -> TaskT:
        definition = _checked(task)
        own = name or definition.name
        sample = NewJob(id=bytes(16), task=definition.name, queue=registry.default_queue)
        bare = check_schedule(
            Schedule(
                name=own,
                timing=timing,
                job=sample,
                missed=missed,
                overlap=overlap,
                waiting=waiting,
                keep=keep,
            )
        )

        def make() -> Schedule:
            return msgspec.structs.replace(bare, job=task.call().job)

        registry.schedule(own, definition, (bare.timing, missed, overlap, waiting, keep), make)
        return task

    return declare


def on_startup(
    registry: Registry, scope: Literal["cluster", "worker"], *, name: str | None
) -> Callable[[TaskT], TaskT]:
    """Declares a task that runs at start-up."""
    if scope == "cluster":
        return decorator(registry, Startup(), name=name, overlap="allow")
    if scope != "worker":
        raise BadInput(f'scope is "cluster" or "worker", not {scope!r}')
    if name is not None:
        raise BadInput('scope="worker" makes no schedule: it has no name=')

    def declare(task: TaskT) -> TaskT:
        definition = _checked(task)
        if definition.runs_in == "process":
            raise BadInput(
                f'{definition.name}: a start-up of scope="worker" runs in the worker process itself; '
                'runs_in="process" would be another one'
            )
        registry.start_with(definition)
        return task

    return declare


def _checked(task: "Task[..., Any]") -> Any:
    """Its definition, or `BadInput` for what cannot be run without being told more."""
    from tidemill.app.task import Task

    if not isinstance(task, Task):
        raise BadInput(
            "@app.cron, @app.every and @app.on_startup stand above @app.task: they are given a task, not "
            f"{type(task).__name__}"
        )
    said = task.definition.unique
    if said is not None and said.on_conflict == "refuse":
        raise BadInput(
            f'{task.name} has on_conflict="refuse", and nobody would get the error of a schedule: "existing" '
            "passes over a tick whose key is held"
        )
    required = task.definition.signature.required
    if required:
        raise BadInput(
            f"{task.name} needs {', '.join(required)}, and a schedule calls it without arguments: give "
            'defaults, or use app.schedules.put("name", task.call(...), cron=...)'
        )
    return task.definition


def _seconds(length: Seconds) -> float:
    return span_of(length) / SECOND


def _instant(moment: datetime | None) -> Instant | None:
    if moment is not None and not isinstance(moment, datetime):
        raise BadInput(f"start and end take a datetime with a time zone, not {type(moment).__name__}")
    return None if moment is None else instant_of(moment)
