"""Which jobs a command means: ids, or a filter."""

import functools
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec.structs import replace

from tidemill.cli.options.moments import PastType
from tidemill.model.errors import BadInput
from tidemill.model.ids import JobId, parse_id
from tidemill.model.jobs.job import JobRecord, JobState
from tidemill.model.queues.lane import PRIORITIES
from tidemill.model.view import PAGE_LIMIT, JobFilter

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine

F = TypeVar("F", bound=Callable[..., Any])


class IdType(click.ParamType):  # type: ignore[type-arg]
    """A job's id."""

    name = "id"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> JobId:
        try:
            return parse_id(value)
        except BadInput as error:
            self.fail(str(error), param, ctx)


class LimitType(click.ParamType):  # type: ignore[type-arg]
    """A number of rows, or all."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | None:
        if value is None or isinstance(value, int):
            return value
        if value == "all":
            return None
        if not value.isdecimal() or int(value) < 1:
            self.fail(f"{value!r} is neither a number of rows nor `all`", param, ctx)
        return int(value)


ids_argument = click.argument("ids", nargs=-1, type=IdType(), metavar="[ID]...")
limit_option = click.option(
    "-n", "--limit", type=LimitType(), default="100", show_default=True, help="The most rows, or `all`."
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")


_PRIORITY = click.IntRange(PRIORITIES.start, PRIORITIES.stop - 1)
_FILTERS = {
    "queue": click.option("-q", "--queue", metavar="NAME", help="Only of this queue."),
    "task": click.option("--task", metavar="NAME", help="Only of this task."),
    "key": click.option("--key", help="Only with this key."),
    "tag": click.option("--tag", help="Only with this tag."),
    "text": click.option("--text", help="Only where this occurs in the payload or the last error's message."),
    "group": click.option("--group", metavar="NAME", help="Only of this dead-letter group (`dead groups`)."),
    "since": click.option(
        "--since",
        type=PastType(),
        help="Only what came into its state at this moment or later; or a length of time ago. Of scheduled "
        "jobs the due time counts.",
    ),
    "until": click.option("--until", type=PastType(), help="The same, before this moment."),
    "member": click.option(
        "--worker", "member", metavar="NAME", help="Only what this member runs or ran last."
    ),
    "schedule": click.option("--schedule", metavar="NAME", help="Only what this schedule made."),
    "priority": click.option("-p", "--priority", type=_PRIORITY, help="Only with this priority."),
}


def filter_options(*, state: JobState | None = None) -> Callable[[F], F]:
    """The options of a filter; without `--state` if the command is about one state."""

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def run(*args: Any, **options: Any) -> Any:
            chosen = state or options.pop("state", None)
            parts = {name: options.pop(name) for name in _FILTERS}
            only = JobFilter(state=chosen and JobState(chosen), **parts)
            return command(*args, only=only, **options)

        for option in reversed(_FILTERS.values()):
            run = option(run)
        if state is None:
            states = click.Choice([state.value for state in JobState])
            run = click.option("-s", "--state", type=states, help="Only in this state.")(run)
        return run  # type: ignore[return-value]

    return decorate


async def pages(
    engine: "Engine", only: JobFilter, limit: int | None = None
) -> AsyncIterator[list[JobRecord]]:
    """The jobs that match, page by page. Short and empty pages happen: a filter may look far for few."""
    cursor = None
    left = limit
    while left is None or left > 0:
        size = PAGE_LIMIT if left is None else min(left, PAGE_LIMIT)
        page = await engine.inspect.list(only, cursor=cursor, limit=size)
        if page.jobs:
            yield page.jobs
        left = None if left is None else left - len(page.jobs)
        cursor = page.cursor
        if cursor is None:
            return


def narrows(only: JobFilter) -> bool:
    """Whether the filter says anything besides a state."""
    return any(getattr(only, name) is not None for name in _FILTERS)


def unless_all(only: JobFilter) -> JobFilter:
    """The filter without the state that a command means anyway: "all" must be said."""
    return replace(only, state=None)
