"""The tasks and queues of one app."""

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from inspect import unwrap
from types import FunctionType
from typing import Any

from msgspec.structs import replace

from tidemill.model.errors import BadInput
from tidemill.model.jobs.retry import Retry
from tidemill.model.names import check_queue, check_task, nearest
from tidemill.model.queues.layers import Declaration, Fields, field_value, fields_of
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.schedules.schedule import Schedule
from tidemill.model.time import Instant, Span, span_of
from tidemill.model.view import TaskEntry
from tidemill.task.definition import Definition

DEFAULT_QUEUE = "default"


class Registry:
    """What an app declares, by name."""

    def __init__(
        self,
        *,
        retry: Retry | None = None,
        timeout: Span | None = None,
        default: QueueOptions | None = None,
        strict_queues: bool = False,
    ) -> None:
        self.retry = retry or Retry()
        """The app's default, for tasks and queues that say nothing."""
        self.timeout = timeout
        self.default = default or QueueOptions()
        """The options of a queue that was not declared."""
        self.strict_queues = strict_queues
        """Only declared queues may be used."""
        self.default_queue = DEFAULT_QUEUE
        self.queues: dict[str, QueueOptions] = {}
        self._fields: dict[str, Fields] = {}
        """What is said of each of them, and nothing else."""
        self.version = 0
        """Grows with every declaration, so that what was worked out before is worked out again."""
        self._definitions: dict[str, Definition] = {}
        self.schedules: dict[str, Callable[[], Schedule]] = {}
        """What makes each declared schedule: made late, because a task's queue may be declared after it."""
        self._said: dict[str, tuple[str, Hashable]] = {}
        self.on_replaced: list[Callable[[], object]] = []
        """Called when a task has taken the place of another: what follows from it is worked out again."""
        self._handlers: dict[str | None, str] = {}
        """The task that handles the deaths of each; under None, those of all that have no other."""
        self._expected: dict[str, None] = {}
        """Whose handlers are still to be named."""
        self.startups: list[Definition] = []
        """Tasks that every worker process runs when it starts."""

    def add(self, definition: Definition) -> Definition:
        """Register a task. Two functions with one name are refused: jobs would go to the wrong one. In a
        notebook or at a prompt the later one takes the place of the earlier one: a cell was run again."""
        known = self._definitions.get(definition.name)
        if known is not None and not _same_code(known, definition):
            if not (_is_interactive(known.function) and _is_redefined(known.function, definition.function)):
                raise BadInput(
                    f"there are two tasks named {definition.name!r}: give one of them another name by "
                    "@app.task(name=...)"
                )
            self.version += 1
        if definition.queue is not None:
            self.check_queue(definition.queue)
        self._definitions[definition.name] = definition
        if known is not None:
            for react in self.on_replaced:
                react()
        return definition

    def declare(self, name: str, said: Mapping[str, Any]) -> None:
        """A queue with the options that are said of it; twice is refused unless both say the same."""
        known = {option: value for option, value in said.items() if value is not None}
        options = replace(self.default, **known)
        fields = {option: field_value(value) for option, value in said.items()}
        if self._fields.get(check_queue(name), fields) != fields:
            raise BadInput(
                f"the queue {name!r} was declared before with other options: {_shown(self._fields[name])}; "
                f"now: {_shown(fields)}"
            )
        self.queues[name] = options
        self._fields[name] = fields
        self.version += 1

    def declaration_of(self, name: str, declared_at: Instant) -> Declaration | None:
        """What this app says of a queue; None: it only uses it, and has nothing to say."""
        declares, defaults = name in self._fields, fields_of(self.default)
        if not declares and not defaults:
            return None
        return Declaration(
            fields=self._fields.get(name, {}), defaults=defaults, declares=declares, declared_at=declared_at
        )

    def declared_queues(self) -> list[str]:
        """The queues that this app says something of."""
        return [name for name in self.queue_names() if self.declaration_of(name, 0) is not None]

    def schedule(
        self, name: str, definition: Definition, said: Hashable, make: Callable[[], Schedule]
    ) -> None:
        """A schedule of a task that the code declares. Two with one name are refused, because only one could
        fire; unless they say the same (a module that is imported twice), or a notebook's cell was run
        again."""
        known = self._said.setdefault(check_task(name), (definition.name, said))
        if known != (definition.name, said):
            if known[0] != definition.name or not _is_interactive(definition.function):
                raise BadInput(f"there are two schedules named {name!r}: give one of them another by name=")
            self._said[name] = (definition.name, said)
        self.schedules[name] = make

    def expect_handler(self, handled: Sequence[Definition]) -> Callable[[Definition], None]:
        """A decorator is about to say which task handles the deaths of these (of all that have no other, if
        none is named). Until then nothing can be enqueued: a decorator without its brackets would else be no
        handler, in silence."""
        names: list[str | None] = [task.name for task in handled] or [None]
        expected = ", ".join(name or "" for name in names)
        self._expected[expected] = None
        self.version += 1

        def handle(handler: Definition) -> None:
            for name in names:
                if (known := self._handlers.get(name, handler.name)) != handler.name:
                    raise BadInput(
                        f"{name or 'this app'} has a handler already: {known}; a death is handled by one task"
                    )
            self._handlers |= dict.fromkeys(names, handler.name)
            self.version += 1
            self._expected.pop(expected, None)

        return handle

    def handler_of(self, definition: Definition) -> str | None:
        """The task that handles the deaths of its jobs. Handlers have none: a death ends there."""
        if self._expected:
            raise BadInput(
                f"app.on_dead({next(iter(self._expected))}) was given no handler: write @app.on_dead() above "
                "@app.task, with the tasks in the brackets whose deaths it handles, and let it take a DeadJob"
            )
        if self.handles(definition.name):
            return None
        return self._handlers.get(definition.name, self._handlers.get(None))

    def owns(self, definition: Definition) -> bool:
        """Whether this is one of ours; also in a module that is imported twice."""
        known = self._definitions.get(definition.name)
        return known is not None and _same_code(known, definition)

    def handles(self, name: str) -> bool:
        """Whether a task is one that handles deaths."""
        return name in self._handlers.values()

    def entry_of(self, definition: Definition) -> TaskEntry:
        """What the catalogue says of a task."""
        entry = definition.entry(self.default_queue, self.handler_of(definition))
        if not definition.takes_a_death:
            return entry
        # its jobs are stored by the engine, which knows of no defaults and shows how many attempts there are
        return replace(entry, retry=entry.retry or self.options_of(entry.queue).retry or self.retry)

    def start_with(self, definition: Definition) -> None:
        """A task that every worker process runs when it starts."""
        known = [each for each in self.startups if each.name != definition.name]
        self.startups = [*known, definition]

    def schedule_names(self) -> list[str]:
        """Every schedule that the code declares."""
        return sorted(self.schedules)

    def check_queue(self, name: str) -> str:
        """The same name, or `BadInput`."""
        if self.strict_queues and check_queue(name) not in self.queues:
            declared = ", ".join(sorted(self.queues)) or "none"
            raise BadInput(
                f"the queue {name!r} was not declared by app.queue(...)"
                f"{nearest(name, sorted(self.queues)) or ';'} declared: {declared}"
            )
        return check_queue(name)

    def find(self, name: str) -> Definition | None:
        """A task by its name, or None."""
        return self._definitions.get(name)

    def definitions(self) -> list[Definition]:
        """All tasks, by name."""
        return [self._definitions[name] for name in sorted(self._definitions)]

    def task_names(self) -> list[str]:
        """Every task, by name."""
        return sorted(self._definitions)

    def options_of(self, queue: str) -> QueueOptions:
        """The options of a queue, declared or not."""
        return self.queues.get(queue, self.default)

    def timeout_of(self, options: QueueOptions) -> Span | None:
        """What a queue's jobs get when neither call nor task says anything."""
        return self.timeout if options.timeout is None else span_of(options.timeout)

    def queue_of(self, definition: Definition) -> str:
        """Where a task's jobs go unless the call says otherwise."""
        return definition.queue or self.default_queue

    def queue_names(self) -> tuple[str, ...]:
        """Every queue that this app declares or that its tasks use, the default one included."""
        used = {self.queue_of(definition) for definition in self._definitions.values()}
        return tuple(sorted({*self.queues, *used, self.default_queue}))


def _shown(fields: Fields) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in fields.items()) or "nothing"


def _same_code(one: Definition, other: Definition) -> bool:
    """A module that is imported twice (as __main__ and by its name) is no conflict. Two functions that a
    factory made, or that have one name in one file, are."""
    if one.function is other.function:
        return True
    source = _source_of(one.function)
    return source is not None and source == _source_of(other.function)


def _is_interactive(function: Callable[..., object]) -> bool:
    """Whether it was written at a prompt or in a notebook's cell: there the program has no file."""
    return function.__module__ == "__main__" and not hasattr(sys.modules["__main__"], "__file__")


def _is_redefined(one: Callable[..., object], other: Callable[..., object]) -> bool:
    """Whether the second has the name of the first, in the same module: a cell that was run again."""
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def _source_of(function: Callable[..., object]) -> tuple[str, str, int] | None:
    """Where a function is written; None where more than one can come from there."""
    inner = unwrap(function)  # those of one decorator share its code
    if not isinstance(inner, FunctionType) or "<locals>" in inner.__qualname__:
        return None
    code = inner.__code__
    return code.co_filename, inner.__qualname__, code.co_firstlineno
