"""Watching an engine's calls, for metrics, traces and tests: one observer, no change to the engine.

The observer is called after every call of a facet, on the loop or in the thread that made it (`blocking`),
with what was called, how long it took, how many items it carried and which error it raised. It must be quick
and must not raise."""

import time
from collections.abc import Callable, Iterator, Sized
from contextlib import contextmanager
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, NamedTuple, ParamSpec, cast

from tidemill.engine.protocol import Engine

P = ParamSpec("P")

FACETS = ("jobs", "blocking", "inspect", "queues", "tasks", "schedules", "locks", "members", "signals")
"""The facets whose methods are calls; `transactions` is not watched: its scripts do no I/O."""


class EngineCall(NamedTuple):
    """One call of a facet's method."""

    facet: str
    method: str
    items: int
    """The length of the first argument if it is a batch, else 1."""
    seconds: float
    error: BaseException | None


Observer = Callable[[EngineCall], None]


def instrument(engine: Engine, observe: Observer) -> Engine:
    """The same engine, every call of which is told to the observer."""
    return cast(Engine, _WatchedEngine(engine, observe))


class _WatchedEngine:
    def __init__(self, engine: Engine, observe: Observer) -> None:
        self._engine = engine
        self._facets = {
            name: _WatchedFacet(name, facet, observe)
            for name in FACETS
            if (facet := getattr(engine, name)) is not None
        }

    def __getattr__(self, name: str) -> object:
        return self._facets.get(name) or getattr(self._engine, name)


class _WatchedFacet:
    def __init__(self, name: str, facet: object, observe: Observer) -> None:
        self._name = name
        self._facet = facet
        self._observe = observe

    def __getattr__(self, name: str) -> object:
        found = getattr(self._facet, name)
        if callable(found):
            found = _watched(self._name, name, found, self._observe)
            setattr(self, name, found)  # found directly from now on
        return found


def _watched(facet: str, name: str, method: Callable[P, Any], observe: Observer) -> Callable[P, Any]:
    @contextmanager
    def watch(args: tuple[object, ...]) -> Iterator[None]:
        batch = args and isinstance(args[0], Sized) and not isinstance(args[0], str | bytes)
        items = len(cast(Sized, args[0])) if batch else 1
        error: BaseException | None = None
        begin = time.perf_counter()
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            observe(EngineCall(facet, name, items, time.perf_counter() - begin, error))

    @wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> Any:
        with watch(args):
            return await method(*args, **kwargs)

    @wraps(method)
    def call_here(*args: P.args, **kwargs: P.kwargs) -> Any:
        with watch(args):
            return method(*args, **kwargs)

    return call if iscoroutinefunction(method) else call_here
