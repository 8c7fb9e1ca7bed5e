"""One task with its options, as workers see it."""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args

import msgspec
from msgspec.structs import replace

from tidemill.model.errors import (
    BadInput,
    BadPayload,
    PayloadTooLarge,
    ResultTooLarge,
    Unencodable,
    UnencodableResult,
)
from tidemill.model.jobs.death import DeadJob
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.run import check_result
from tidemill.model.jobs.unique import UniqueOptions, text_of
from tidemill.model.names import KEY_LIMIT, check_key, check_queue, check_task, qualified_name
from tidemill.model.queues.lane import DEFAULT_PRIORITY, check_priority
from tidemill.model.time import Span
from tidemill.model.view import TaskEntry
from tidemill.task import codec
from tidemill.task.signature import Signature

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
        runs_in: RunsIn | None = None,
        unique: UniqueOptions | None = None,
    ) -> None:
        function = _function_of(function)
        self.name = check_task(name or _name_of(function))
        self.function = function
        self.queue = None if queue is None else check_queue(queue)
        self.priority = None if priority is None else check_priority(priority)
        self.timeout = timeout
        self.retry = retry
        called = _called(function)
        _refuse_generators(self.name, called)
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(called)
        self.runs_in: RunsIn = _runs_in(self.name, function, runs_in, is_async=self.is_async)
        self.signature = Signature(self.name, function)
        _refuse_methods(self.name, function, self.signature)
        self.signature.check_result_type()
        self.key = key
        if key is not None and not isinstance(key, str):
            raise BadInput(f"key= takes the name of a parameter, not {type(key).__name__}")
        if key is not None and not self.signature.has(key.split(".")[0]):
            raise BadInput(f"key={key!r}: {self.name} has no parameter {key.split('.')[0]!r}")
        self.unique = unique
        for name in () if unique is None else unique.parameters:
            if not self.signature.has(name):
                raise BadInput(f"unique={name!r}: {self.name} has no parameter {name!r}")

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

    def unique_text(self, body: bytes, parameters: tuple[str, ...]) -> str:
        """The unique key that a call's arguments make. Defaults count as if they were given."""
        defaults: dict[str, Any] = msgspec.json.decode(self.signature.defaults)
        named = {**defaults, **self.named_arguments(codec.JSON, body)}
        chosen = {name: named.get(name) for name in parameters} if parameters else named
        return text_of(msgspec.json.decode(codec.canonical(chosen)), ())

    def decode(self, codec_number: int, body: bytes) -> tuple[Sequence[Any], dict[str, Any]]:
        """The arguments of a call, or `BadPayload`."""
        if codec_number != codec.JSON:
            raise BadPayload(f"{self.name}: codec {codec_number} is not known here; upgrade this worker")
        return self.signature.decode(body)

    def named_arguments(self, codec_number: int, body: bytes) -> dict[str, Any]:
        """The arguments of a call by their parameters, however they were given; or `BadPayload`."""
        return self.signature.named(*self.decode(codec_number, body))

    def encode_result(self, value: object) -> bytes | None:
        """The stored form of what the function returned (nothing for None), or `UnencodableResult` /
        `ResultTooLarge`, which name its type."""
        if value is None and self.signature.none_fits:
            return None
        try:
            return check_result(self.signature.encode_result(value))
        except PayloadTooLarge as error:
            raise ResultTooLarge(f"{self._result(value)}: {error}") from None
        except Unencodable as error:
            raise UnencodableResult(f"{self._result(value)}: {error}") from None
        except Exception as error:  # code of the user's own that makes JSON of its type
            raise UnencodableResult(f"{self._result(value)}: {type(error).__name__}: {error}") from error

    def _result(self, value: object) -> str:
        return f"the result of {self.name}, a {qualified_name(type(value))}"

    @cached_property
    def takes_a_death(self) -> bool:
        """Whether it can handle the deaths of jobs: it takes a `DeadJob` and needs nothing else."""
        first = self.signature.positional[:1]
        return (
            bool(first)
            and self.signature.required in ([], first)
            and self.signature.is_annotated(first[0], DeadJob)
        )

    def entry(self, queue: str, on_dead: str | None = None) -> TaskEntry:
        """What the catalogue says of it; `queue` is the app's default."""
        return TaskEntry(
            name=self.name,
            queue=self.queue or queue,
            priority=DEFAULT_PRIORITY if self.priority is None else self.priority,
            timeout=self.timeout,
            retry=self.retry,
            key=self.key,
            schema=self.signature.schema(),
            on_dead=on_dead,
            unique=None if self.unique is None else replace(self.unique, defaults=self.signature.defaults),
        )


def _function_of(given: Any) -> Callable[..., Any]:
    """What a job will call. A task that is decorated again stands for its function."""
    inner = getattr(given, "definition", None)
    if isinstance(inner, Definition):
        return inner.function
    if isinstance(given, staticmethod):
        return _function_of(given.__func__)
    if isinstance(given, type) or not callable(given):
        what = f"the class {given.__qualname__}" if isinstance(given, type) else type(given).__name__
        raise BadInput(f"a task is a function, not {what}")
    return given  # type: ignore[no-any-return]


def _called(function: Any) -> Any:
    """The code that a call enters first. It decides between loop and thread; what it wraps does not."""
    if isinstance(function, partial):
        return _called(_function_of(function.func))
    return function if inspect.isroutine(function) else type(function).__call__


def _refuse_generators(name: str, called: Any) -> None:
    if inspect.isgeneratorfunction(called) or inspect.isasyncgenfunction(called):
        raise BadInput(
            f"{name} is a generator, of which nothing runs until its items are asked for: return a list, or "
            "enqueue a job for each item"
        )


def _refuse_methods(name: str, function: Callable[..., Any], signature: Signature) -> None:
    """A function of a class that waits for its object. (A bound method has it, a staticmethod needs none.)"""
    path = getattr(function, "__qualname__", "").rpartition("<locals>.")[2]
    if "." in path and signature.positional[:1] in (["self"], ["cls"]):
        raise BadInput(
            f"{name} is a method, and a job has no object to call it on: use a function or a staticmethod"
        )


def _name_of(function: Any) -> str:
    module, path = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(path, str):
        raise BadInput(
            f"a {type(function).__qualname__} has no name of its own by which a worker could find it: give "
            "the task one by name="
        )
    # pkg/__main__.py belongs to `python -m pkg`: its tasks are those of pkg, from wherever it is imported.
    return f"{module_of(function).removesuffix('.__main__')}.{path}"


def module_of(function: Callable[..., Any]) -> str:
    """The module's name as a worker will import it. A program that is run (`python shop.py` or `-m shop`) is
    called __main__ there and `shop` in the worker: the same task must have the same name in both. (And
    __mp_main__ in the processes that it starts by multiprocessing.)"""
    name = function.__module__
    return _program_name(sys.modules[name]) if name in ("__main__", "__mp_main__") else name


def _program_name(program: ModuleType) -> str:
    spec = program.__spec__
    if spec is not None and spec.name != "__main__":  # __main__: a folder was run
        return spec.name
    if getattr(program, "__file__", None) is None:
        return "__main__"
    path = Path(str(program.__file__)).absolute()
    names = [path.stem]
    for folder in path.parents:
        if not (folder / "__init__.py").is_file():
            break
        names.insert(0, folder.name)
    return ".".join(names).removesuffix(".__init__")


def _runs_in(name: str, function: Callable[..., Any], given: RunsIn | None, *, is_async: bool) -> RunsIn:
    if given is not None and given not in get_args(RunsIn):
        raise BadInput(f'runs_in is "loop", "thread" or "process", not {given!r}')
    if given in ("loop", "thread") and is_async != (given == "loop"):
        raise BadInput(f'{name}: "loop" is for async def, "thread" for def; leave runs_in out')
    if given == "process":
        _check_importable(name, function, is_async=is_async)
    return given or ("loop" if is_async else "thread")


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
