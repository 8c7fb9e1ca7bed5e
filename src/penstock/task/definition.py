"""One task with its options, as workers see it."""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from penstock.model.errors import BadInput, BadPayload, Unencodable
from penstock.model.lane import DEFAULT_PRIORITY, check_priority
from penstock.model.names import KEY_LIMIT, check_key, check_queue, check_task
from penstock.model.retry import Retry
from penstock.model.run import check_result
from penstock.model.time import Span
from penstock.model.view import TaskEntry
from penstock.task import codec
from penstock.task.signature import Signature

RunsIn = Literal["loop", "thread", "process"]
"""`async def` runs on the worker's loop, `def` in one of its threads, or in a process that can be killed."""


class Definition:
    """A registered function. Options that are None are taken from its queue, then from the app."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        timeout: Span | None = None,
        retry: Retry | None = None,
        key: str | None = None,
        on_dead: str | None = None,
        runs_in: RunsIn | None = None,
    ) -> None:
        if not callable(function):
            raise BadInput(f"a task is a function, not {type(function).__name__}")
        self.name = check_task(name or f"{_module_of(function)}.{function.__qualname__}")
        self.function = function
        self.queue = None if queue is None else check_queue(queue)
        self.priority = None if priority is None else check_priority(priority)
        self.timeout = timeout
        self.retry = retry
        self.on_dead = on_dead
        self.is_async = inspect.iscoroutinefunction(inspect.unwrap(function))
        self.runs_in: RunsIn = _runs_in(self.name, function, runs_in, is_async=self.is_async)
        self.signature = Signature(self.name, function)
        self.key = key
        if key is not None and not self.signature.has(key.split(".")[0]):
            raise BadInput(f"key={key!r}: {self.name} has no parameter {key.split('.')[0]!r}")

    def __repr__(self) -> str:
        return f"<Definition {self.name} in {self.runs_in}>"

    def encode(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
        """The body of a call, or `BadArguments` / `Unencodable`."""
        return self.signature.encode(args, kwargs)

    def key_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """The key of a call."""
        if self.key is None:
            return None
        value = self.signature.argument(self.key, args, kwargs)
        return None if value is None else check_key(str(value)[:KEY_LIMIT])

    def decode(self, codec_number: int, body: bytes) -> tuple[Sequence[Any], dict[str, Any]]:
        """The arguments of a call, or `BadPayload`."""
        if codec_number != codec.JSON:
            raise BadPayload(f"{self.name}: codec {codec_number} is not known here; upgrade this worker")
        return self.signature.decode(body)

    def encode_result(self, value: object) -> bytes | None:
        """The stored form of what the function returned, or `Unencodable` / `PayloadTooLarge`."""
        if value is None:
            return None
        try:
            return check_result(codec.encode(value))
        except Unencodable as error:
            raise Unencodable(f"the result of {self.name}: {error}") from None

    def entry(self, queue: str) -> TaskEntry:
        """What the catalogue says of it."""
        return TaskEntry(
            name=self.name,
            queue=self.queue or queue,
            priority=DEFAULT_PRIORITY if self.priority is None else self.priority,
            timeout=self.timeout,
            retry=self.retry,
            key=self.key,
            schema=self.signature.schema(),
            on_dead=self.on_dead,
        )


def _module_of(function: Callable[..., Any]) -> str:
    """The module's name as a worker will import it. A program that is run (`python shop.py` or `-m shop`) is
    called __main__ there and `shop` in the worker: the same task must have the same name in both."""
    if function.__module__ != "__main__":
        return function.__module__
    program = sys.modules["__main__"]
    if program.__spec__ is not None:
        return program.__spec__.name.removesuffix(".__main__")
    return Path(getattr(program, "__file__", None) or "__main__").stem


def _runs_in(name: str, function: Callable[..., Any], asked: RunsIn | None, *, is_async: bool) -> RunsIn:
    if asked is not None and asked not in get_args(RunsIn):
        raise BadInput(f'runs_in is "loop", "thread" or "process", not {asked!r}')
    if asked in ("loop", "thread") and is_async != (asked == "loop"):
        raise BadInput(f'{name}: "loop" is for async def, "thread" for def; leave runs_in out')
    if asked == "process":
        _check_importable(name, function, is_async=is_async)
    return asked or ("loop" if is_async else "thread")


def _check_importable(name: str, function: Callable[..., Any], *, is_async: bool) -> None:
    """A process finds its function by name, in a module that it imports."""
    if is_async:
        raise BadInput(f'{name}: runs_in="process" is for def; an async def runs on the loop')
    path = getattr(function, "__qualname__", "<unknown>")
    if "<" in path or "." in path:
        raise BadInput(
            f'{name}: runs_in="process" needs a function at the top of a module, so that another process '
            "finds it by name; lambdas, local functions and methods cannot be found"
        )
