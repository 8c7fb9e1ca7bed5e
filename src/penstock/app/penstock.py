"""`Penstock`: one application's tasks and queues, and the way to their jobs."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, wait
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, Unpack, overload
from uuid import UUID

from penstock.app import declaring
from penstock.app.by_name import job_by_name
from penstock.app.declaring import TaskT
from penstock.app.events import Events
from penstock.app.job import Job
from penstock.app.link import Link, refuse_in_loop
from penstock.app.members import Member, members
from penstock.app.options import (
    NOTHING,
    Options,
    Seconds,
    Using,
    read_keep,
    read_options,
    read_timeout,
)
from penstock.app.schedules import Schedules
from penstock.app.session import Session
from penstock.app.task import Call, Task
from penstock.engine import connections
from penstock.engine.protocol import BATCH_LIMIT
from penstock.model.errors import BadInput
from penstock.model.event import EventFilter
from penstock.model.ids import parse_id
from penstock.model.job import JobState, NewJob
from penstock.model.queue import Keep, Limit, QueueOptions, Rate
from penstock.model.retry import Retry
from penstock.model.schedule import Missed, Overlap
from penstock.model.time import span_of
from penstock.task.definition import Definition, RunsIn
from penstock.task.registry import Registry
from penstock.task.settings import Settings

if TYPE_CHECKING:
    from penstock.engine.protocol import Engine, Transactions
    from penstock.worker.embedded import EmbeddedWorker

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")

CHUNKS_UNDER_WAY = 2
"""Of a long `enqueue_many`: one is encoded while the other goes to disk."""


class Penstock:
    """One application.

    `url` says where state lives: an argument, else `PENSTOCK_URL`, else `sqlite:///penstock.db`. Nothing is
    opened before the first call that needs it."""

    def __init__(
        self,
        url: str | None = None,
        *,
        namespace: str | None = None,
        retry: Retry | None = None,
        timeout: "Seconds | None" = None,
        strict_queues: bool = False,
        settings: Settings | None = None,
    ) -> None:
        if settings is not None and (url, namespace, timeout) != (None, None, None):
            raise BadInput("give settings=, or url=, namespace= and timeout=, not both")
        self.settings = settings or Settings.load(url=url, namespace=namespace, timeout=timeout)
        keep = self.settings.keep_completed
        self.registry = Registry(
            retry=retry or self._default_retry(),
            timeout=None if self.settings.timeout is None else span_of(self.settings.timeout),
            default=QueueOptions(keep_completed=keep, keep_cancelled=keep, keep_dead=self.settings.keep_dead),
            strict_queues=strict_queues,
        )
        self._link = Link(self.settings.url, self.settings.namespace)

    def __repr__(self) -> str:
        return f"<Penstock {self.settings.shown('url')}>"

    @property
    def url(self) -> str:
        """Where state lives, as an engine's URL. It may hold a password: do not log it."""
        return self._link.url

    @property
    def namespace(self) -> str:
        return self._link.namespace

    def queue(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        rate: str | Rate | None = None,
        per_key: Limit | None = None,
        per_task: "Mapping[Task[..., Any] | str, Limit] | None" = None,
        per_worker: Limit | None = None,
        fair_by: str | None = None,
        weights: Mapping[str, int] | None = None,
        timeout: "Seconds | None" = None,
        retry: Retry | None = None,
        keep: int | Keep | None = None,
        keep_completed: int | Keep | None = None,
        keep_dead: int | Keep | None = None,
        keep_cancelled: int | Keep | None = None,
        keep_body: bool = True,
    ) -> None:
        """Declare a queue: its limits, the defaults of its jobs, what is kept of them. In force when the next
        worker of this app starts.

        `keep` is short for `keep_completed` and `keep_cancelled` together, and a number for a count: `keep=0`
        keeps nothing of them. What becomes of dead letters is said by `keep_dead` alone."""
        default = self.registry.default
        finished = read_keep("keep", keep)
        limits = {
            task if isinstance(task, str) else task.name: limit for task, limit in (per_task or {}).items()
        }
        options = QueueOptions(
            concurrency=concurrency,
            rate=None if rate is None else Rate.parse(rate),
            per_key=per_key,
            per_task=limits,
            per_worker=per_worker,
            fair_by=fair_by,  # type: ignore[arg-type]  # checked by QueueOptions
            weights=dict(weights or {}),
            timeout=None if timeout is None else read_timeout(timeout) / 1_000_000,
            retry=retry,
            keep_completed=read_keep("keep_completed", keep_completed) or finished or default.keep_completed,
            keep_dead=read_keep("keep_dead", keep_dead) or default.keep_dead,
            keep_cancelled=read_keep("keep_cancelled", keep_cancelled) or finished or default.keep_cancelled,
            keep_body=keep_body,
        )
        self.registry.declare(name, options)

    @overload
    def task(self, function: Callable[P, T], /) -> Task[P, T]: ...
    @overload
    def task(
        self,
        /,
        *,
        name: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        timeout: "Seconds | None" = None,
        retry: Retry | None = None,
        key: str | None = None,
        runs_in: RunsIn | None = None,
    ) -> Callable[[Callable[P, T]], Task[P, T]]: ...
    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Register a function as a task, with or without options.

        `async def` runs on the worker's loop, `def` in one of its threads; `runs_in="process"` gives CPU work
        a process that can be stopped. `key` names the parameter by which jobs are told apart for limits and
        fairness."""
        if function is not None:
            return self._register(function, options)
        return lambda function: self._register(function, options)

    def _register(self, function: Callable[P, T], options: dict[str, Any]) -> Task[P, T]:
        if options.get("timeout") is not None:
            options = {**options, "timeout": read_timeout(options["timeout"])}
        if not isinstance(options.get("retry"), Retry | None):
            raise BadInput(f"retry= takes a Retry(...), not {type(options['retry']).__name__}")
        definition = self.registry.add(Definition(function, **options))
        return Task(self, definition, NOTHING)

    def cron(
        self,
        fields: str,
        *,
        tz: str = "UTC",
        missed: Missed = "once",
        overlap: Overlap = "skip",
        jitter: Seconds = 0.0,
        start: datetime | None = None,
        end: datetime | None = None,
        name: str | None = None,
    ) -> Callable[[TaskT], TaskT]:
        """Run a task by the calendar: five fields of cron, or six that begin with seconds, in a time zone.

        Stands above `@app.task`. `missed`: what becomes of ticks when no controller was there ("skip" those
        more than a minute old, run "once" for all, or "all" of them, at most the latest 100). `overlap`: and
        while the last run has not ended ("skip", "queue" behind it, "allow"). `jitter`: each job starts up to
        this many seconds later. `name`: of the schedule, if it is not to be the task's."""
        timing = declaring.cron(fields, tz=tz, jitter=jitter, start=start, end=end)
        return declaring.decorator(self.registry, timing, name=name, missed=missed, overlap=overlap)

    def every(
        self,
        seconds: Seconds,
        *,
        jitter: Seconds = 0.0,
        start: datetime | None = None,
        end: datetime | None = None,
        name: str | None = None,
    ) -> Callable[[TaskT], TaskT]:
        """Run a task again and again: this long after the end of its last run, never two at once. The first
        run comes at once, or at `start`. Stands above `@app.task`."""
        timing = declaring.every(seconds, jitter=jitter, start=start, end=end)
        return declaring.decorator(self.registry, timing, name=name)

    def on_startup(
        self, *, scope: Literal["cluster", "worker"] = "cluster", name: str | None = None
    ) -> Callable[[TaskT], TaskT]:
        """Run a task at start-up. Stands above `@app.task`.

        `scope="cluster"`: a job, once each time the cluster starts: when a worker starts and none has been
        there. (Where a deploy adds it to a cluster that runs, when it first appears.) `scope="worker"`: a
        plain call in every worker process, before that takes its first job; if it raises, that process does
        not work."""
        return declaring.on_startup(self.registry, scope, name=name)

    @property
    def schedules(self) -> Schedules:
        """All schedules, as the engine has them: to list, make, pause, run and remove."""
        return Schedules(self._link)

    def enqueue(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[Using],
    ) -> Job[Any]:
        """Enqueue by a task's name, from a process that need not have its code. Defaults come from this app,
        else from the catalogue that workers publish; without an entry there, `queue=` must be given."""
        read = read_options(self.registry, options)
        refuse_in_loop("enqueue")
        _check_arguments(args, kwargs)
        new = self._link.wait("enqueue", self._by_name(task, args, kwargs or {}, read))
        return self._put("enqueue", new, self.registry.find(task), read.transaction)

    async def aenqueue(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[Using],
    ) -> Job[Any]:
        """`enqueue` for async code."""
        read = read_options(self.registry, options)
        _check_arguments(args, kwargs)
        new = await self._link.run(self._by_name(task, args, kwargs or {}, read))
        return await self._aput(new, self.registry.find(task), read.transaction)

    def _by_name(self, task: str, args: Sequence[Any], kwargs: Mapping[str, Any], options: Options) -> Any:
        async def make(session: Session) -> NewJob:
            return await job_by_name(session, self, task, args, kwargs, options)

        return make

    def enqueue_many(self, calls: Iterable[Call[R]], *, transaction: object = None) -> list[Job[R]]:
        """Enqueue many calls in their order, in atomic chunks of 1,000. If the iterable fails on the way, the
        chunks before stay enqueued. With `transaction`, a connection of the caller's own, all of them exist
        if and only if its transaction commits."""
        refuse_in_loop("enqueue_many")
        jobs: list[Job[R]] = []
        if transaction is not None:
            transactions = self._link.transactions("enqueue_many")
            for chunk in _chunks(calls):
                script = transactions.enqueue([call.job for call in chunk])
                connections.play(transaction, script, twin="app.aenqueue_many")
                jobs += [self._handle(call) for call in chunk]
            return jobs
        under_way: list[Future[list[bool]]] = []
        try:
            for chunk in _chunks(calls):
                if len(under_way) == CHUNKS_UNDER_WAY:
                    under_way.pop(0).result()
                under_way.append(self._link.enqueue([call.job for call in chunk]))
                jobs += [self._handle(call) for call in chunk]
        except BaseException as error:  # what was handed over is not taken back
            wait(under_way)
            error.add_note(f"enqueue_many: the {len(jobs):,} calls before this one were handed over")
            raise
        for future in under_way:
            future.result()
        return jobs

    async def aenqueue_many(self, calls: Iterable[Call[R]], *, transaction: object = None) -> list[Job[R]]:
        """`enqueue_many` for async code."""
        jobs: list[Job[R]] = []
        for chunk in _chunks(calls):
            new = [call.job for call in chunk]
            if transaction is None:
                await self._link.aenqueue(new)
            else:
                await connections.aplay(transaction, (await self._link.atransactions()).enqueue(new))
            jobs += [self._handle(call) for call in chunk]
        return jobs

    def job(self, job_id: str | UUID) -> Job[Any]:
        """A handle on a job by its id; nothing is asked before its first `refresh` or `result`."""
        return Job(self._link, parse_id(job_id))

    def members(self) -> list[Member]:
        """Who is there: every process group that beats, by name, with its health and what it runs."""
        return self._link.wait("members", members)

    async def amembers(self) -> list[Member]:
        """`members` for async code."""
        return await self._link.run(members)

    def events(
        self,
        *,
        queue: str | None = None,
        task: "Task[..., Any] | str | None" = None,
        states: Iterable[JobState | str] | None = None,
        job: "Job[Any] | str | UUID | None" = None,
    ) -> Events:
        """What happens to jobs from now on, as it happens: `for` or `async for` over `Event`s, and a `Gap`
        wherever some are missing. As a block it begins when every process tells what it changes."""
        wanted = EventFilter(
            queue=queue,
            task=task.name if isinstance(task, Task) else task,
            states=None if states is None else _read_states(states),
            job=None if job is None else parse_id(job.uuid if isinstance(job, Job) else job),
        )
        return Events(self._link, wanted)

    def worker(
        self,
        *,
        slots: int | None = None,
        queues: Sequence[str] | None = None,
        shutdown_timeout: float | None = None,
        controller: bool = True,
    ) -> "EmbeddedWorker":
        """A worker inside this program: `async with app.worker(): ...`. Leaving the block drains it. It
        stands for controller too, unless `controller` is False.

        Tasks with `runs_in="process"` run in processes that import the app by its name: it must be a variable
        of a module, or `PENSTOCK_APP` must say where it is.

        It shares the program's loop and its fate: a task that blocks the loop blocks the program, and a crash
        takes both. Use `penstock worker` where jobs must not harm one another."""
        from penstock.app.embedding import embed

        return embed(
            self, slots=slots, queues=queues, shutdown_timeout=shutdown_timeout, controller=controller
        )

    def close(self) -> None:
        """Let go of the engine. The next call opens it anew."""
        self._link.close()

    async def aclose(self) -> None:
        """`close` for async code."""
        await asyncio.to_thread(self._link.close)

    def work_on(self, url: str, namespace: str) -> None:
        """Forget what the settings say: in a worker process, state lives where the worker was told."""
        self._link.move(url, namespace)

    def transactions(self) -> "Transactions":
        """The facet whose scripts run on a connection of the caller's."""
        return self._link.transactions("transactions")

    async def atransactions(self) -> "Transactions":
        """`transactions` for async code."""
        return await self._link.atransactions()

    def adopt(self, engine: "Engine") -> Callable[[], None]:
        """Use a worker's engine for calls on the loop that opened it. Returns the undoing."""
        session = Session(asyncio.get_running_loop(), engine)
        self._link.adopt(session)
        return lambda: self._link.disown(session)

    def _put(
        self, name: str, new: NewJob, definition: Definition | None, transaction: object = None
    ) -> Job[Any]:
        """Store one job and hand out its handle."""
        refuse_in_loop(name)
        if transaction is None:
            self._link.enqueue_here((new,))
        else:
            script = self._link.transactions(name).enqueue((new,))
            connections.play(transaction, script, twin=f"a{name}")
        return Job(self._link, new.id, new.task, definition)

    async def _aput(self, new: NewJob, definition: Definition | None, transaction: object = None) -> Job[Any]:
        """`_put` for async code."""
        if transaction is None:
            await self._link.aenqueue((new,))
        else:
            await connections.aplay(transaction, (await self._link.atransactions()).enqueue((new,)))
        return Job(self._link, new.id, new.task, definition)

    def _handle(self, call: Call[R]) -> Job[R]:
        return Job(self._link, call.job.id, call.job.task, call.definition)

    def _default_retry(self) -> Retry:
        settings = self.settings
        return Retry(attempts=settings.retry_attempts, base=settings.retry_base, cap=settings.retry_cap)


def _read_states(states: Iterable[JobState | str]) -> frozenset[JobState]:
    try:
        return frozenset(map(JobState, [states] if isinstance(states, str) else states))
    except ValueError as error:
        raise BadInput(f"{error}: the states are {', '.join(JobState)}") from None


def _check_arguments(args: object, kwargs: object) -> None:
    if isinstance(args, str | bytes) or not isinstance(args, Sequence):
        raise BadInput('arguments by name are a list and a dict: app.enqueue("task", [1, 2], {"x": 3})')
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise BadInput(f"keyword arguments are a dict, not {type(kwargs).__name__}")


def _chunks(calls: Iterable[Call[R]]) -> Iterable[list[Call[R]]]:
    left = iter(calls)
    while chunk := list(islice(left, BATCH_LIMIT)):
        if not all(isinstance(call, Call) for call in chunk):
            raise BadInput("enqueue_many takes calls: enqueue_many(task.call(x) for x in items)")
        yield chunk
