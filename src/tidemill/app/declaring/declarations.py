"""What the code of an app declares: its queues, its tasks, and schedules of these.

Nothing is written anywhere when it is read: workers publish it when they start.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar, overload

from msgspec import UNSET, UnsetType

from tidemill.app.accepting import accepts, read_retry
from tidemill.app.declaring import on_dead, schedules
from tidemill.app.declaring.on_dead import HandlerT
from tidemill.app.declaring.queue_options import read_queue_options
from tidemill.app.declaring.schedules import TaskT
from tidemill.app.enqueueing import uniqueness
from tidemill.app.enqueueing.options import Seconds, Using, read_timeout
from tidemill.app.enqueueing.uniqueness import read_task
from tidemill.app.task import Task
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.unique import OnConflict, UniqueUntil
from tidemill.model.options import unknown_option
from tidemill.model.queues.queue import Keep, Limit, Rate
from tidemill.model.schedules.schedule import KEEP, WAITING_LIMIT, Missed, Overlap
from tidemill.task.definition import Definition, RunsIn
from tidemill.task.registry import Registry

P = ParamSpec("P")
T = TypeVar("T")

LimitLike: TypeAlias = Limit | Rate | int | str
"""A limit as people write it: `5`, `"100/m"`, `Limit(concurrency=5, rate="100/m")`."""


_OF_TASKS = ("name", "queue", "priority", "timeout", "retry", "key", "runs_in", *uniqueness.NAMES)


class Declaring(ABC):
    """The part of `Tidemill` that fills its registry."""

    registry: Registry

    @abstractmethod
    def _task_of(self, definition: Definition) -> Any:
        """Its `Task`, which knows the whole app."""

    @accepts("app.queue")
    def queue(
        self,
        name: str,
        *,
        concurrency: int | UnsetType | None = UNSET,
        rate: str | Rate | UnsetType | None = UNSET,
        per_key: LimitLike | UnsetType | None = UNSET,
        limits: Mapping[str, LimitLike | None] | UnsetType | None = UNSET,
        per_task: "Mapping[Task[..., Any] | str, LimitLike] | UnsetType | None" = UNSET,
        per_worker: LimitLike | UnsetType | None = UNSET,
        fair_by: str | UnsetType | None = UNSET,
        weights: Mapping[str, int] | UnsetType | None = UNSET,
        timeout: "Seconds | UnsetType | None" = UNSET,
        retry: Retry | UnsetType | None = UNSET,
        keep: int | Keep | UnsetType | None = UNSET,
        keep_completed: int | Keep | UnsetType | None = UNSET,
        keep_dead: int | Keep | UnsetType | None = UNSET,
        keep_cancelled: int | Keep | UnsetType | None = UNSET,
        keep_body: bool | UnsetType | None = UNSET,
    ) -> None:
        """Declare a queue: its limits, the defaults of its jobs, what is kept of them. In force when the next
        worker of this app starts. Only what is named here is declared: an option that is left out is free for
        other apps to declare, and None says "no limit". Operators can set options over what is declared
        (`app.queues`).

        `concurrency` and `rate` ("100/m" or a `Rate`) count in the whole cluster. `per_key`, `per_task` and
        `per_worker` (for each worker process) take a number of jobs at once, a rate, or a `Limit` of both.
        `limits` has the own limits of single keys, each in the place of `per_key`: `limits={"acme": 50}`;
        None is no limit for that key. `keep` is short for `keep_completed` and `keep_cancelled` together,
        and a number for a count: `keep=0` keeps nothing of them. What becomes of dead letters is said by
        `keep_dead` alone."""
        said = {
            option: value
            for option, value in locals().items()
            if option not in ("self", "name") and value is not UNSET
        }
        self.registry.declare(name, read_queue_options(said))

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
        unique: bool | str | tuple[str, ...] | None = None,
        unique_until: UniqueUntil | None = None,
        unique_for: "Seconds | None" = None,
        on_conflict: OnConflict | None = None,
        debounce: "Seconds | None" = None,
        debounce_max: "Seconds | None" = None,
        throttle: "Seconds | None" = None,
    ) -> Callable[[Callable[P, T]], Task[P, T]]: ...
    def task(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """Register a function as a task, with or without options: `@app.task` or `@app.task(queue="mail")`.

        name        what its jobs call it; else module.function
        queue       where its jobs go; else the app's default queue
        priority    0 first, to 10; else 5
        timeout     of one attempt, in seconds or as a timedelta; else its queue's, then the app's
        retry       a `Retry`; else its queue's, then the app's
        key         the parameter (or "parameter.field") by which jobs are told apart for limits and fairness
        runs_in     "process" gives CPU work a process that can be stopped. Else an `async def` runs on the
                    worker's loop, a `def` in one of its threads
        unique      at most one live job of the same arguments (True), of a parameter, or of several; with it
                    `unique_until`, `unique_for`, `on_conflict`. `debounce`, `debounce_max`, `throttle` imply
                    it. As in `using`, which says for single jobs what differs

        What is the same for single jobs (`delay`, `expires`, `after`, ...) is said by `using`."""
        for name in options:
            if name not in _OF_TASKS:
                more = "; it is one of using(), for single jobs;" if name in Using.__annotations__ else ""
                raise unknown_option("app.task", name, _OF_TASKS, more)
        if function is not None:
            return self._register(function, options)
        return lambda function: self._register(function, options)

    def _register(self, function: Callable[P, T], options: dict[str, Any]) -> Task[P, T]:
        if options.get("timeout") is not None:
            options = {**options, "timeout": read_timeout(options["timeout"])}
        read_retry(options.get("retry"))
        unique = read_task(options)
        others = {name: value for name, value in options.items() if name not in uniqueness.NAMES}
        definition = self.registry.add(Definition(function, unique=unique, **others))
        task: Task[P, T] = self._task_of(definition)
        return task

    @accepts("app.cron")
    def cron(
        self,
        fields: str,
        *,
        tz: str = "UTC",
        missed: Missed = "once",
        overlap: Overlap = "skip",
        waiting: int = WAITING_LIMIT,
        keep: int | None = KEEP,
        jitter: Seconds = 0.0,
        start: datetime | None = None,
        end: datetime | None = None,
        name: str | None = None,
    ) -> Callable[[TaskT], TaskT]:
        """Run a task by the calendar: five fields of cron, or six that begin with seconds, in a time zone.

        Stands above `@app.task`. `missed`: what becomes of ticks when no controller was there ("skip" those
        more than a minute old, run "once" for all, or "all" of them, at most the latest 100). `overlap`: and
        while the last run has not ended ("skip", "queue" behind it, "allow"). `waiting`: the most jobs in
        that line behind the one that runs; a tick that finds so many is passed over, with a warning.
        `keep`: of how many ticks before the last one the completed and cancelled jobs stay (None: as the
        queue says). Dead letters stay as the queue says.
        `jitter`: each job starts up to this many seconds later. `name`: of the schedule, if it is not to be
        the task's."""
        timing = schedules.cron(fields, tz=tz, jitter=jitter, start=start, end=end)
        return schedules.decorator(
            self.registry,
            timing,
            name=name,
            missed=missed,
            overlap=overlap,
            waiting=waiting,
            keep=keep,
        )

    @accepts("app.every")
    def every(
        self,
        seconds: Seconds,
        *,
        keep: int | None = KEEP,
        jitter: Seconds = 0.0,
        start: datetime | None = None,
        end: datetime | None = None,
        name: str | None = None,
    ) -> Callable[[TaskT], TaskT]:
        """Run a task again and again: this long after the end of its last run, never two at once. The first
        run comes at once, or at `start`. Stands above `@app.task`. `keep`: as with `cron`."""
        timing = schedules.every(seconds, jitter=jitter, start=start, end=end)
        return schedules.decorator(self.registry, timing, name=name, keep=keep)

    @accepts("app.on_startup")
    def on_startup(
        self, *, scope: Literal["cluster", "worker"] = "cluster", name: str | None = None
    ) -> Callable[[TaskT], TaskT]:
        """Run a task at start-up. Stands above `@app.task`.

        `scope="cluster"`: a job, once each time the cluster starts: when a worker starts and none has been
        there. (Where a deploy adds it to a cluster that runs, when it first appears.) `scope="worker"`: a
        plain call in every worker process, before that takes its first job; if it raises, that process does
        not work."""
        return schedules.on_startup(self.registry, scope, name=name)

    @accepts("app.on_dead")
    def on_dead(self, *tasks: "Task[..., Any]") -> Callable[[HandlerT], HandlerT]:
        """Handle the deaths of jobs: after the last attempt, after three crashes, or expired. Stands above
        `@app.task`, whose function is given a `DeadJob`.

        With tasks in the brackets: the deaths of their jobs; `@app.on_dead()`: of all tasks of this app that
        have no other handler. (`using(on_dead=...)` chooses one for a call.) The handler is a task like any
        other, with its own queue, retries and timeout: its job is stored in the same step in which the other
        one dies, and runs at least once. The deaths of handlers are not handled."""
        return on_dead.on_dead(self.registry, tasks)
