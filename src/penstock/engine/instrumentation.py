"""Watching an engine's calls, for metrics, traces and tests: one observer, no change to the engine.

The observer is called on the loop after every call of a facet, with what was called, how long it
took, how many items it carried and which error it raised. It must be quick and must not raise."""

import time
from collections.abc import Awaitable, Callable, Sized
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar, cast

from penstock.engine.protocol import Engine

P = ParamSpec("P")
T = TypeVar("T")

FACETS = ("jobs", "inspect", "queues", "tasks", "schedules", "locks", "members", "signals")
"""The facets whose methods are calls; `transactions` does no I/O."""


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
        self._facets = {name: _WatchedFacet(name, getattr(engine, name), observe) for name in FACETS}

    def __getattr__(self, name: str) -> object:
        return self._facets.get(name) or getattr(self._engine, name)


class _WatchedFacet:
    def __init__(self, name: str, facet: object, observe: Observer) -> None:
        self._name = name
        self._facet = facet
        self._observe = observe

    def __getattr__(self, name: str) -> object:
        method = _watched(self._name, name, getattr(self._facet, name), self._observe)
        setattr(self, name, method)  # found directly from now on
        return method


def _watched(
    facet: str, name: str, method: Callable[P, Awaitable[T]], observe: Observer
) -> Callable[P, Awaitable[T]]:
    @wraps(method)
    async def call(*args: P.args, **kwargs: P.kwargs) -> T:
        items = (
            len(args[0])
            if args and isinstance(args[0], Sized) and not isinstance(args[0], str | bytes)
            else 1
        )
        error: BaseException | None = None
        begin = time.perf_counter()
        try:
            return await method(*args, **kwargs)
        except BaseException as raised:
            error = raised
            raise
        finally:
            observe(EngineCall(facet, name, items, time.perf_counter() - begin, error))

    return call
