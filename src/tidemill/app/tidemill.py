"""`Tidemill`: one application's tasks and queues, and the way to their jobs."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack
from uuid import UUID

from tidemill.app.accepting import accepts, read_retry, yes_or_no
from tidemill.app.access.link import Link, refuse_in_loop
from tidemill.app.access.session import EngineSession
from tidemill.app.declaring.declarations import Declaring
from tidemill.app.enqueueing import bulk
from tidemill.app.enqueueing.by_name import job_by_name
from tidemill.app.enqueueing.options import NOTHING, Options, Seconds, Using, read_options
from tidemill.app.enqueueing.same_call import check_of, refuse_taken
from tidemill.app.job import Job
from tidemill.app.operating.queues import Queues
from tidemill.app.operating.schedules import Schedules
from tidemill.app.operating.tasks import Tasks
from tidemill.app.reading.events import Events
from tidemill.app.reading.members import Member, members
from tidemill.app.task import Bound, Call, Task
from tidemill.engine import connections
from tidemill.model.errors import BadInput
from tidemill.model.event import EventFilter
from tidemill.model.ids import parse_id
from tidemill.model.jobs.job import JobState, NewJob, Stored
from tidemill.model.jobs.retry import Retry
from tidemill.model.names import check_queue, check_task
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import span_of
from tidemill.task.definition import Definition
from tidemill.task.registry import Registry
from tidemill.task.settings import Settings

if TYPE_CHECKING:
    from tidemill.worker.process.embedded import EmbeddedWorker

R = TypeVar("R")


class Tidemill(Declaring):
    """One application.

    `url` says where state lives: an argument, else `TIDEMILL_URL`, else `sqlite:///tidemill.db`. Nothing is
    opened before the first call that needs it."""

    @accepts("Tidemill")
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
        if not isinstance(settings, Settings | None):
            raise BadInput(f"settings= takes Settings, not {type(settings).__name__}")
        self.settings = settings or Settings.load(url=url, namespace=namespace, timeout=timeout)
        keep = self.settings.keep_completed
        self.registry = Registry(
            retry=read_retry(retry) or self._default_retry(),
            timeout=None if self.settings.timeout is None else span_of(self.settings.timeout),
            default=QueueOptions(keep_completed=keep, keep_cancelled=keep, keep_dead=self.settings.keep_dead),
            strict_queues=yes_or_no("strict_queues", strict_queues),
        )
        self._link = Link(self.settings.url, self.settings.namespace)

    def __repr__(self) -> str:
        return f"<Tidemill {self.settings.shown('url')}>"

    async def __aenter__(self) -> Self:
        """Give the running loop an engine of its own, at once: until the block ends, async calls on this loop
        go straight to it, and not by way of Tidemill's own thread. Blocks may be nested or overlap: they
        share it, and the last one out closes it. Calls under way count as inside until they end."""
        await self._link.loops.enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._link.loops.leave()

    @property
    def url(self) -> str:
        """Where state lives, as an engine's URL. It may hold a password: do not log it."""
        return self._link.url

    @property
    def namespace(self) -> str:
        return self._link.namespace

    @property
    def schedules(self) -> Schedules:
        """All schedules, as the engine has them: to list, make, pause, run and remove."""
        return Schedules(self._link)

    @property
    def queues(self) -> Queues:
        """All queues, as the engine has them: to list, and to set, reset, pause and resume."""
        return Queues(self._link)

    @property
    def tasks(self) -> Tasks:
        """All tasks that workers have published: to list, pause and resume."""
        return Tasks(self._link)

    def enqueue(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[Using],
    ) -> Job[Any]:
        """Enqueue by a task's name, from a process that need not have its code. Defaults come from this app,
        else from the catalogue that workers publish; without an entry there, `queue=` must be given."""
        read = read_options(self.registry, options, where="app.enqueue")
        refuse_in_loop("enqueue")
        _check_call(task, args, kwargs)
        new = self._link.wait("enqueue", self._by_name(task, args, kwargs or {}, read))
        return self._put("enqueue", new, self.registry.find(task), read)

    async def aenqueue(
        self,
        task: str,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        **options: Unpack[Using],
    ) -> Job[Any]:
        """`enqueue` for async code."""
        read = read_options(self.registry, options, where="app.aenqueue")
        _check_call(task, args, kwargs)
        new = await self._link.run(self._by_name(task, args, kwargs or {}, read))
        return await self._aput(new, self.registry.find(task), read)

    def _by_name(self, task: str, args: Sequence[Any], kwargs: Mapping[str, Any], options: Options) -> Any:
        async def make(session: EngineSession) -> NewJob:
            return await job_by_name(session, self, task, args, kwargs, options)

        return make

    @accepts("app.enqueue_many")
    def enqueue_many(self, calls: Iterable[Call[R]], *, transaction: object = None) -> list[Job[R]]:
        """Enqueue many calls in their order, in atomic chunks of 1,000. If the iterable fails on the way, or
        a chunk is refused, the chunks before stay enqueued and nothing later is. With `transaction`, a
        connection of the caller's own, all of them exist if and only if its transaction commits.

        A chunk is also refused if one of its calls has an id (`using(id=...)`) that another call has, in the
        engine or among these calls (`IdTaken`). Two cases are left, without `transaction`: another producer
        stores that other call in the very moment of this one, or the engine is out of reach when the ids are
        compared, and comes back. Then this raises `IdTaken` as well, but the rest of the chunk is stored."""
        refuse_in_loop("enqueue_many")
        return bulk.enqueue_many(self._link, calls, transaction)

    @accepts("app.aenqueue_many")
    async def aenqueue_many(self, calls: Iterable[Call[R]], *, transaction: object = None) -> list[Job[R]]:
        """`enqueue_many` for async code. Other tasks of the loop have their turn after every 100 calls."""
        return await bulk.aenqueue_many(self._link, calls, transaction)

    def job(self, job_id: str | UUID) -> Job[Any]:
        """A handle on a job by its id; nothing is read before its first `info` or `result`."""
        return Job(self._link, parse_id(job_id))

    def members(self) -> list[Member]:
        """Every process group that sends heartbeats, by name, with its health and what it runs."""
        return self._link.wait("members", members)

    async def amembers(self) -> list[Member]:
        """`members` for async code."""
        return await self._link.run(members)

    @accepts("app.events")
    def events(
        self,
        *,
        queue: str | None = None,
        task: "Task[..., Any] | str | None" = None,
        states: Iterable[JobState | str] | None = None,
        job: "Job[Any] | str | UUID | None" = None,
    ) -> Events:
        """What happens to jobs from now on, as it happens: `for` or `async for` over `Event`s, and a `Gap`
        wherever some are missing. As a block it begins when every process emits its changes."""
        wanted = EventFilter(
            queue=None if queue is None else check_queue(queue),
            task=None if task is None else check_task(task.name if isinstance(task, Task) else task),
            states=None if states is None else _read_states(states),
            job=None if job is None else parse_id(job.uuid if isinstance(job, Job) else job),
        )
        return Events(self._link, wanted)

    @accepts("app.worker")
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
        of a module, or `TIDEMILL_APP` must say where it is.

        It shares the program's loop and its fate: a task that blocks the loop blocks the program, and a crash
        takes both. Use `tidemill worker` where jobs must not harm one another."""
        from tidemill.app.access.embedding import embed

        return embed(
            self, slots=slots, queues=queues, shutdown_timeout=shutdown_timeout, controller=controller
        )

    def close(self) -> None:
        """Let go of the engine. The next call opens it anew."""
        self._link.close()

    async def aclose(self) -> None:
        """`close` for async code."""
        await asyncio.to_thread(self._link.close)

    def _put(self, name: str, new: NewJob, definition: Definition | None, options: Options) -> Job[Any]:
        """Store one job and hand out its handle. With an id of the caller's that is known already: the
        handle of the job that has it, if that is the same call."""
        refuse_in_loop(name)
        transaction = options.transaction
        if transaction is None:
            (stored,) = self._link.enqueue_here((new,))
            if not stored.created and options.id is not None and stored.id == new.id:
                self._link.wait(name, lambda session: refuse_taken(session, [(new, definition)]))
        else:
            check = None if options.id is None else check_of([(new, definition)])
            script = self._link.transactions(name).enqueue((new,), check=check)
            (stored,) = connections.play(transaction, script, twin=f"a{name}")
        return Job(self._link, stored.id, new.task, definition, created=_created(new, stored, options))

    async def _aput(self, new: NewJob, definition: Definition | None, options: Options) -> Job[Any]:
        """`_put` for async code."""
        transaction = options.transaction
        if transaction is None:
            (stored,) = await self._link.aenqueue((new,))
            if not stored.created and options.id is not None and stored.id == new.id:
                await self._link.run(lambda session: refuse_taken(session, [(new, definition)]))
        else:
            check = None if options.id is None else check_of([(new, definition)])
            script = (await self._link.atransactions()).enqueue((new,), check=check)
            (stored,) = await connections.aplay(transaction, script)
        return Job(self._link, stored.id, new.task, definition, created=_created(new, stored, options))

    def _task_of(self, definition: Definition) -> Any:
        return Task(self, definition, NOTHING)

    def _default_retry(self) -> Retry:
        settings = self.settings
        return Retry(attempts=settings.retry_attempts, base=settings.retry_base, cap=settings.retry_cap)


def _created(new: NewJob, stored: Stored, options: Options) -> bool:
    """Whether this call has stored the job. A repeat after a lost answer finds its id known: where the id was
    drawn for this call, the call itself has stored it."""
    return stored.created or (options.id is None and stored.id == new.id)


def _read_states(states: Iterable[JobState | str]) -> frozenset[JobState]:
    try:
        return frozenset(map(JobState, [states] if isinstance(states, str) else states))
    except (ValueError, TypeError) as error:
        raise BadInput(f"{error}: the states are {', '.join(JobState)}") from None


def _check_call(task: object, args: object, kwargs: object) -> None:
    if isinstance(task, Bound):
        name = task.name.rpartition(".")[2]
        raise BadInput(f"app.enqueue takes a task's name: write {name}.enqueue(...) for a task that is here")
    if isinstance(args, str | bytes) or not isinstance(args, Sequence):
        raise BadInput('arguments by name are a list and a dict: app.enqueue("task", [1, 2], {"x": 3})')
    if kwargs is not None and not isinstance(kwargs, Mapping):
        raise BadInput(f"keyword arguments are a dict, not {type(kwargs).__name__}")
