"""What a call may say, and how a call becomes a job.

Precedence of every option: the call (`using`) > the task > its queue > the app.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict, get_args
from uuid import UUID

import msgspec

from tidemill.app.accepting import read_retry
from tidemill.app.declaring.on_dead import read_handler
from tidemill.app.enqueueing import uniqueness
from tidemill.app.enqueueing.unknown_names import warn_of_queue
from tidemill.model.errors import BadInput, PayloadTooLarge
from tidemill.model.ids import JobId, parse_id
from tidemill.model.jobs.job import NewJob, ParentDied
from tidemill.model.jobs.retry import Retry
from tidemill.model.jobs.unique import OnConflict, UniqueOptions, UniqueUntil
from tidemill.model.names import check_key
from tidemill.model.options import unknown_option
from tidemill.model.queues.lane import DEFAULT_PRIORITY, check_priority
from tidemill.model.queues.queue import Keep
from tidemill.model.time import LONGEST, Span, instant_of, span_of
from tidemill.task import codec
from tidemill.task.registry import Registry

if TYPE_CHECKING:
    from tidemill.app.job import Job
    from tidemill.app.task import Task
    from tidemill.model.jobs.death import DeadJob

Seconds = float | timedelta


class Using(TypedDict, total=False):
    """The options of `using` and of enqueue by name."""

    delay: Seconds
    at: datetime
    priority: int
    queue: str
    timeout: Seconds | None
    retry: Retry
    id: str | UUID
    key: str | None
    expires: Seconds
    after: "Job[Any] | str | UUID | Iterable[Job[Any] | str | UUID]"
    parent_died: ParentDied
    on_dead: "Task[[DeadJob], Any] | str | None"
    tags: Iterable[str]
    transaction: object
    unique: bool | str | None
    unique_until: UniqueUntil
    unique_for: Seconds
    on_conflict: OnConflict
    debounce: Seconds
    debounce_max: Seconds
    throttle: Seconds


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of one call, checked. None: not said."""

    delay: Span = 0
    at: int | None = None
    priority: int | None = None
    queue: str | None = None
    timeout: Span | None = None
    retry: Retry | None = None
    id: JobId | None = None
    key: str | None = None
    expires: Span | None = None
    after: tuple[JobId, ...] = ()
    parent_died: ParentDied = "cancel"
    on_dead: str | None = None
    """Empty: none, whatever the task says."""
    headers: bytes | None = None
    transaction: object = None
    unique: UniqueOptions | None = None


NOTHING = Options()


def read_options(
    registry: Registry, said: Mapping[str, Any], former: Options = NOTHING, *, where: str = "using"
) -> Options:
    """Options as they were written, on top of former ones; `BadInput` for what makes no sense."""
    changes: dict[str, Any] = {}
    for name, value in said.items():
        read = _READ.get(name)
        if read is not None:
            changes |= read(value)
        elif name not in uniqueness.NAMES:
            raise unknown_option(where, name, (*_READ, *uniqueness.NAMES))
    if not said.keys().isdisjoint(uniqueness.NAMES):
        changes["unique"] = uniqueness.read_call(said, former.unique)
    if "at" in changes or "delay" in changes:  # the later word counts
        changes = {"at": None, "delay": 0, **changes}
    if "queue" in changes:
        registry.check_queue(changes["queue"])
    options = msgspec.structs.replace(former, **changes)
    if options.at is not None and options.delay:
        raise BadInput("give at= or delay=, not both")
    return options


def _timeout(value: Seconds | None) -> dict[str, Any]:
    # "none" said by a call is stronger than what task and queue say, so it is a length of its own
    return {"timeout": LONGEST if value is None else read_timeout(value)}


def read_seconds(name: str, value: Seconds) -> Span:
    """A length of time as a span; the option is named if it is none."""
    try:
        return span_of(value)
    except BadInput as error:
        raise BadInput(f"{name}=: {error}") from None


def _expires(value: Seconds) -> dict[str, Any]:
    if (span := read_seconds("expires", value)) == 0:
        raise BadInput("expires must be longer than 0 s; leave it out for never")
    return {"expires": span}


def _parent_died(value: ParentDied) -> dict[str, Any]:
    if value not in get_args(ParentDied):
        raise BadInput(f'parent_died is "cancel", "run" or "wait", not {value!r}')
    return {"parent_died": value}


def read_timeout(value: Seconds) -> Span:
    """A timeout as a span."""
    if (span := read_seconds("timeout", value)) == 0:
        raise BadInput("a timeout must be longer than 0 s; timeout=None is none")
    return span


def read_keep(name: str, value: int | Keep | None) -> Keep | None:
    """What is kept of finished jobs; a number is a count."""
    if value is None or isinstance(value, Keep):
        return value
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{name}= takes a number of jobs or a Keep(age=..., count=...), not {value!r}")
    return Keep(count=value)


def _moment(value: datetime) -> dict[str, Any]:
    if not isinstance(value, datetime):
        raise BadInput(f"at= takes a datetime with a time zone, not {type(value).__name__}")
    return {"at": instant_of(value)}


def _parents(value: object) -> dict[str, Any]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        value = (value,)
    return {"after": tuple(map(_parent, value))}


def _parent(job: object) -> JobId:
    from tidemill.app.job import Job

    if isinstance(job, Job):
        return job.uuid.bytes
    if isinstance(job, str | UUID):
        return parse_id(job)
    what = type(job).__name__
    hint = ": a call has no job yet, enqueue it first" if what == "Call" else ""
    raise BadInput(f"after= takes a job or a list of jobs, not {what}{hint}")


def _tags(value: Iterable[str]) -> dict[str, Any]:
    tags = list(value) if isinstance(value, Iterable) else [None]
    if isinstance(value, str) or not all(isinstance(tag, str) for tag in tags):
        raise BadInput(f"tags= takes a list of strings, not {value!r}")
    return {"headers": codec.encode({"tags": tags}) if tags else None}


_READ: dict[str, Any] = {
    "delay": lambda value: {"delay": read_seconds("delay", value)},
    "at": _moment,
    "priority": lambda value: {"priority": check_priority(value)},
    "queue": lambda value: {"queue": value},
    "timeout": _timeout,
    "retry": lambda value: {"retry": read_retry(value)},
    "id": lambda value: {"id": parse_id(value)},
    "key": lambda value: {"key": check_key(value)},
    "expires": _expires,
    "after": _parents,
    "parent_died": _parent_died,
    "on_dead": lambda value: {"on_dead": read_handler(value)},
    "tags": _tags,
    "transaction": lambda value: {"transaction": value},
}


class Defaults(msgspec.Struct, frozen=True):
    """What a task says of its jobs: from its definition, or from the catalogue."""

    name: str
    queue: str
    priority: int | None
    timeout: Span | None
    retry: Retry | None
    on_dead: str | None


def resolve(
    registry: Registry, defaults: Defaults, options: Options, *, known_queues: Iterable[str] = ()
) -> NewJob:
    """The job of a call but for its payload: what follows from options alone. (Copying it with another id and
    payload costs a third of making it anew.) `known_queues`: those of other apps."""
    queue = options.queue or defaults.queue
    if queue != defaults.queue:
        warn_of_queue(registry, queue, known_queues)
    of_queue = registry.options_of(queue)
    retry = options.retry or defaults.retry or of_queue.retry or registry.retry
    priority = options.priority if options.priority is not None else defaults.priority
    return NewJob(
        id=options.id or b"",
        task=defaults.name,
        queue=queue,
        priority=DEFAULT_PRIORITY if priority is None else priority,
        headers=options.headers,
        key=options.key,
        delay=options.delay,
        at=options.at,
        expires=options.expires,
        timeout=options.timeout or defaults.timeout or registry.timeout_of(of_queue),
        retry=options.retry,
        attempts=retry.attempts,
        after=options.after,
        parent_died=options.parent_died,
        on_dead=(defaults.on_dead if options.on_dead is None else options.on_dead) or None,
    )


def too_large(task: str, body: bytes, limit: int) -> PayloadTooLarge:
    """The error for arguments that are too large to be stored with a job."""
    return PayloadTooLarge(
        f"the arguments of {task} take {len(body):,} bytes; the limit is {limit:,}: store the data elsewhere "
        "and pass a reference"
    )
