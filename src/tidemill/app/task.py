"""A function that can be enqueued.

`Task[P, T]` keeps the function's own types: P its parameters, T what a plain call returns. For an `async
def` that is a coroutine; the methods that make jobs unwrap it, so that the job of `async def f() -> str` is a
`Job[str]`. (Overloading the decorator instead does not work: a type checker cannot tell the two apart.)
"""

from collections.abc import Callable, Coroutine
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar, Unpack, overload

from msgspec.structs import replace

from tidemill.app.enqueueing.options import Defaults, Options, Using, read_options, resolve, too_large
from tidemill.app.enqueueing.uniqueness import unique_of, with_key
from tidemill.app.job import Job
from tidemill.model.errors import BadArguments, BadInput
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import NewJob
from tidemill.task.definition import Definition

if TYPE_CHECKING:
    from tidemill.app.tidemill import Tidemill

P = ParamSpec("P")
T_co = TypeVar("T_co", covariant=True)
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Call(Generic[R_co]):
    """A call that is not yet enqueued: checked and encoded already, for `enqueue_many` and workflows."""

    __slots__ = ("definition", "id_chosen", "job")

    def __init__(self, definition: Definition, job: NewJob, *, id_chosen: bool = False) -> None:
        self.definition = definition
        self.job = job
        self.id_chosen = id_chosen
        """Its id is the caller's: it may be there already."""

    def __repr__(self) -> str:
        return f"<Call of {self.definition.name}>"


class Bound(Generic[P, T_co]):
    """A task with options for its jobs."""

    def __init__(self, app: "Tidemill", definition: Definition, options: Options) -> None:
        self._app = app
        self._definition = definition
        self._options = options
        self._limit = app.settings.payload_limit
        self._unique = unique_of(definition.unique, options)
        self._resolved: NewJob
        self._resolved_at = -1

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def name(self) -> str:
        """What its jobs call it."""
        return self._definition.name

    def using(self, **options: Unpack[Using]) -> "Bound[P, T_co]":
        """The same task with options for its jobs; later ones override earlier ones.

        `delay` (seconds or timedelta) or `at` (an aware datetime): when it becomes ready. `priority`: 0
        first, to 10. `queue`. `timeout` (None: none) and `retry`: of its attempts. `id`: a UUID of the
        caller's, which makes enqueue idempotent: the same call again is the same job, another one `IdTaken`.
        `key`: for limits and fairness by key. `expires`: dead if not started in time. `after`: a job or
        jobs that must end first, and `parent_died`: "cancel", "run" or "wait" if one does not complete.
        `on_dead`: the task that handles its death (None: none), in place of the one that `@app.on_dead` gave
        it. `tags`: words to find it by. `transaction`: a connection of the caller's own; the job exists if
        and only if its transaction commits.

        `unique`: at most one live job of this call's arguments (True), or of this text; False: none of what
        the task says. `unique_until` "end" (default) or "start"; `unique_for`: for so many seconds instead,
        whatever becomes of the job. `on_conflict`: "existing" (default) gives the handle of the job that is
        there, "replace" gives that job this call's arguments, time and priority while it waits, "refuse"
        raises `NotUnique`. `debounce`: the last call runs, after so many seconds without another one,
        `debounce_max` after the first at the latest. `throttle`: the first call of so many seconds runs."""
        read = read_options(self._app.registry, options, self._options)
        return Bound(self._app, self._definition, read)

    @overload
    def enqueue(self: "Bound[P, Coroutine[Any, Any, R]]", *args: P.args, **kwargs: P.kwargs) -> Job[R]: ...
    @overload
    def enqueue(self: "Bound[P, R]", *args: P.args, **kwargs: P.kwargs) -> Job[R]: ...
    def enqueue(self, *args: Any, **kwargs: Any) -> Job[Any]:
        """Enqueue a call; returns once it is durable. In async code use `aenqueue`."""
        new = self._new(args, kwargs)
        return self._app._put("enqueue", new, self._definition, self._options)

    @overload
    async def aenqueue(
        self: "Bound[P, Coroutine[Any, Any, R]]", *args: P.args, **kwargs: P.kwargs
    ) -> Job[R]: ...
    @overload
    async def aenqueue(self: "Bound[P, R]", *args: P.args, **kwargs: P.kwargs) -> Job[R]: ...
    async def aenqueue(self, *args: Any, **kwargs: Any) -> Job[Any]:
        """Enqueue a call; returns once it is durable."""
        return await self._app._aput(self._new(args, kwargs), self._definition, self._options)

    @overload
    def call(self: "Bound[P, Coroutine[Any, Any, R]]", *args: P.args, **kwargs: P.kwargs) -> Call[R]: ...
    @overload
    def call(self: "Bound[P, R]", *args: P.args, **kwargs: P.kwargs) -> Call[R]: ...
    def call(self, *args: Any, **kwargs: Any) -> Call[Any]:
        """A call that is not yet enqueued, for `app.enqueue_many`."""
        if self._options.transaction is not None:
            raise BadInput("a call is not enqueued yet: give transaction= to enqueue_many")
        return Call(self._definition, self._new(args, kwargs), id_chosen=self._options.id is not None)

    def _new(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NewJob:
        definition, options = self._definition, self._options
        registry = self._app.registry
        if self._resolved_at != registry.version:  # a queue may be declared after the task
            version = registry.version
            self._resolved = resolve(registry, self._defaults(), options)
            self._resolved_at = version  # last: another thread may be here too
        try:
            body = definition.signature.encode(args, kwargs)
        except BadArguments as error:
            raise _with_a_hint(definition, error, kwargs) from None
        if len(body) > self._limit:
            raise too_large(definition.name, body, self._limit)
        job = replace(self._resolved, id=options.id or new_id(), body=body)
        if definition.key is not None and options.key is None:
            job = replace(job, key=definition.key_of(args, kwargs))
        if self._unique is not None:
            said = self._unique
            job = with_key(job, said, said.text or definition.unique_text(body, said.parameters))
        return job

    def _defaults(self) -> Defaults:
        definition = self._definition
        return Defaults(
            definition.name,
            self._app.registry.queue_of(definition),
            definition.priority,
            definition.timeout,
            definition.retry,
            self._app.registry.handler_of(definition),
        )


def _with_a_hint(definition: Definition, error: BadArguments, kwargs: dict[str, Any]) -> BadArguments:
    """The same error, unless an option of `using` was given to the call itself."""
    for name in kwargs:
        if name in Using.__annotations__ and not definition.signature.has(name):
            short = definition.name.rpartition(".")[2]
            return BadArguments(
                f"{error}; an option of the job is said by using: {short}.using({name}=...).enqueue(...)"
            )
    return error


class Task(Bound[P, T_co]):
    """A registered function. A plain call just runs it."""

    __wrapped__: Callable[P, T_co]
    __qualname__: str

    def __init__(self, app: "Tidemill", definition: Definition, options: Options) -> None:
        super().__init__(app, definition, options)
        update_wrapper(self, definition.function)

    def __reduce__(self) -> str:
        return self.__qualname__  # as a function is pickled: by its name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T_co:
        return self.__wrapped__(*args, **kwargs)

    @property
    def definition(self) -> Definition:
        """Its name, options and signature, as workers see them."""
        return self._definition
