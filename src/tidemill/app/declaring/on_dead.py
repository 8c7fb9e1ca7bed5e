"""Handlers of deaths: `@app.on_dead()` or `@app.on_dead(task)` above `@app.task`, and `using(on_dead=...)`.

What a handler is given, and when its job is stored, is said in `tidemill.model.jobs.death`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from tidemill.model.errors import BadInput
from tidemill.model.jobs.death import DeadJob
from tidemill.model.names import check_task
from tidemill.task.definition import Definition
from tidemill.task.registry import Registry

if TYPE_CHECKING:
    from tidemill.app.task import Task

HandlerT = TypeVar("HandlerT", bound="Task[[DeadJob], Any]")


def on_dead(registry: Registry, tasks: "tuple[Task[..., Any], ...]") -> Callable[[HandlerT], HandlerT]:
    """Declares the task that it is given as the handler of these; of all that have no other, if none is
    named."""
    handled = [_definition_of(task) for task in tasks]
    for definition in handled:
        if definition.takes_a_death:
            raise BadInput(
                f"{definition.name} takes a DeadJob, so it is a handler itself: write @app.on_dead() above "
                "it, with the tasks in the brackets whose deaths it handles"
            )
        _check_own(registry, definition)
    handle = registry.expect_handler(handled)

    def declare(task: HandlerT) -> HandlerT:
        definition = _definition_of(task)
        _check_own(registry, definition)
        handle(_checked(definition))
        return task

    return declare


def read_handler(value: object) -> str:
    """The name of a handler that a call has chosen; empty: none."""
    if value is None:
        return ""
    if isinstance(value, str):
        return check_task(value)
    return _checked(_definition_of(value)).name


def _definition_of(task: object) -> Definition:
    from tidemill.app.task import Task

    if not isinstance(task, Task):
        raise BadInput(
            f"on_dead is about tasks, not {type(task).__name__}: it stands above @app.task, with the tasks "
            "in its brackets whose deaths are handled"
        )
    return task.definition


def _check_own(registry: Registry, definition: Definition) -> None:
    if not registry.owns(definition):
        raise BadInput(f"{definition.name} is not a task of this app")


def _checked(definition: Definition) -> Definition:
    if not definition.takes_a_death:
        raise BadInput(
            f"{definition.name} cannot handle a death: it must take one argument, the job that died: "
            f"def {definition.name.rpartition('.')[2]}(dead: DeadJob), with DeadJob imported in its module"
        )
    return definition
