"""Watching an engine's calls, for metrics, traces and tests: one observer, no change to the engine.

The observer is called after every call of a facet, on the loop or in the thread that made it (`blocking`),
with what was called, how long it took, how many items it carried and which error it raised. It must be quick
and must not raise. `transactions` is not watched: its scripts do no I/O.

A watched method is an attribute with the protocol's own signature (`_Watch`), so the type checker compares
each facet here with its protocol.
"""

import time
from collections.abc import Callable, Coroutine, Iterator, Sized
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple, ParamSpec, TypeVar

from tidemill.engine.protocol import (
    BlockingFacet,
    Engine,
    InspectFacet,
    JobsFacet,
    LeasesFacet,
    MembersFacet,
    QueuesFacet,
    SchedulesFacet,
    SignalsFacet,
    TasksFacet,
)
from tidemill.model.queues.queue import Keep

P = ParamSpec("P")
T = TypeVar("T")


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
    """The same engine, with every call reported to the observer."""
    return WatchedEngine(engine, observe)


class WatchedEngine:
    """See `instrument`."""

    def __init__(self, engine: Engine, observe: Observer) -> None:
        self._engine = engine
        self.jobs = WatchedJobs(engine.jobs, _Watch("jobs", observe))
        self.blocking = (
            None if engine.blocking is None else WatchedBlocking(engine.blocking, _Watch("blocking", observe))
        )
        self.inspect = WatchedInspect(engine.inspect, _Watch("inspect", observe))
        self.queues = WatchedQueues(engine.queues, _Watch("queues", observe))
        self.tasks = WatchedTasks(engine.tasks, _Watch("tasks", observe))
        self.schedules = WatchedSchedules(engine.schedules, _Watch("schedules", observe))
        self.leases = WatchedLeases(engine.leases, _Watch("leases", observe))
        self.members = WatchedMembers(engine.members, _Watch("members", observe))
        self.signals = WatchedSignals(engine.signals, _Watch("signals", observe))
        self.transactions = engine.transactions
        self.now = engine.now
        self.close = engine.close

    @property
    def name(self) -> str:
        return self._engine.name

    @property
    def single_process(self) -> bool:
        return self._engine.single_process

    @property
    def keeps(self) -> Keep:
        return self._engine.keeps


class _Watch:
    """Makes watched methods of one facet. The name of the method is that of the original."""

    def __init__(self, facet: str, observe: Observer) -> None:
        self._facet = facet
        self._observe = observe

    def __call__(self, method: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
        name = method.__name__

        @wraps(method)
        async def call(*args: P.args, **kwargs: P.kwargs) -> T:
            with self._observed(name, args):
                return await method(*args, **kwargs)

        return call

    def here(self, method: Callable[P, T]) -> Callable[P, T]:
        """For a method that blocks."""
        name = method.__name__

        @wraps(method)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            with self._observed(name, args):
                return method(*args, **kwargs)

        return call

    @contextmanager
    def _observed(self, method: str, args: tuple[object, ...]) -> Iterator[None]:
        items = 1
        if args and isinstance(args[0], Sized) and not isinstance(args[0], str | bytes):
            items = len(args[0])
        error: BaseException | None = None
        begin = time.perf_counter()
        try:
            yield
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._observe(EngineCall(self._facet, method, items, time.perf_counter() - begin, error))


class WatchedJobs:
    """See `tidemill.engine.protocol.JobsFacet`."""

    def __init__(self, jobs: JobsFacet, watch: _Watch) -> None:
        self.enqueue = watch(jobs.enqueue)
        self.claim = watch(jobs.claim)
        self.settle = watch(jobs.settle)
        self.write = watch(jobs.write)
        self.release = watch(jobs.release)
        self.cancel = watch(jobs.cancel)
        self.run_now = watch(jobs.run_now)
        self.replay = watch(jobs.replay)
        self.drop = watch(jobs.drop)
        self.watch = watch(jobs.watch)
        self.promote = watch(jobs.promote)
        self.retire = watch(jobs.retire)
        self.reclaim = watch(jobs.reclaim)
        self.prune = watch(jobs.prune)


class WatchedBlocking:
    """See `tidemill.engine.protocol.BlockingFacet`."""

    def __init__(self, blocking: BlockingFacet, watch: _Watch) -> None:
        self.enqueue = watch.here(blocking.enqueue)


class WatchedInspect:
    """See `tidemill.engine.protocol.InspectFacet`."""

    def __init__(self, inspect: InspectFacet, watch: _Watch) -> None:
        self.get = watch(inspect.get)
        self.why = watch(inspect.why)
        self.counts = watch(inspect.counts)
        self.series = watch(inspect.series)
        self.stats = watch(inspect.stats)
        self.log = watch(inspect.log)
        self.checkpoints = watch(inspect.checkpoints)
        self.audit = watch(inspect.audit)
        self.storage = watch(inspect.storage)
        self.list = watch(inspect.list)
        self.dead_groups = watch(inspect.dead_groups)


class WatchedQueues:
    """See `tidemill.engine.protocol.QueuesFacet`."""

    def __init__(self, queues: QueuesFacet, watch: _Watch) -> None:
        self.declare = watch(queues.declare)
        self.retire = watch(queues.retire)
        self.override = watch(queues.override)
        self.reset = watch(queues.reset)
        self.list = watch(queues.list)
        self.pause = watch(queues.pause)
        self.resume = watch(queues.resume)
        self.sample = watch(queues.sample)


class WatchedTasks:
    """See `tidemill.engine.protocol.TasksFacet`."""

    def __init__(self, tasks: TasksFacet, watch: _Watch) -> None:
        self.publish = watch(tasks.publish)
        self.list = watch(tasks.list)
        self.pause = watch(tasks.pause)
        self.resume = watch(tasks.resume)


class WatchedSchedules:
    """See `tidemill.engine.protocol.SchedulesFacet`."""

    def __init__(self, schedules: SchedulesFacet, watch: _Watch) -> None:
        self.put = watch(schedules.put)
        self.list = watch(schedules.list)
        self.fire = watch(schedules.fire)
        self.pause = watch(schedules.pause)
        self.retire = watch(schedules.retire)
        self.remove = watch(schedules.remove)


class WatchedLeases:
    """See `tidemill.engine.protocol.LeasesFacet`."""

    def __init__(self, leases: LeasesFacet, watch: _Watch) -> None:
        self.acquire = watch(leases.acquire)
        self.renew = watch(leases.renew)
        self.release = watch(leases.release)
        self.list = watch(leases.list)


class WatchedMembers:
    """See `tidemill.engine.protocol.MembersFacet`."""

    def __init__(self, members: MembersFacet, watch: _Watch) -> None:
        self.heartbeat = watch(members.heartbeat)
        self.leave = watch(members.leave)
        self.list = watch(members.list)


class WatchedSignals:
    """See `tidemill.engine.protocol.SignalsFacet`."""

    def __init__(self, signals: SignalsFacet, watch: _Watch) -> None:
        self._signals = signals
        self.publish = watch(signals.publish)
        self.subscribe = watch(signals.subscribe)

    @property
    def room(self) -> int:
        return self._signals.room
