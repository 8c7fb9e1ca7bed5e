"""Enqueue by a task's name, where its code may not be."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from tidemill.app.access.session import EngineSession
from tidemill.app.enqueueing.options import Defaults, Options, resolve, too_large
from tidemill.app.enqueueing.uniqueness import unique_of, with_key
from tidemill.app.enqueueing.unknown_names import warn_of_task
from tidemill.model.errors import BadArguments, UnknownTask
from tidemill.model.ids import new_id
from tidemill.model.jobs.job import NewJob
from tidemill.model.jobs.unique import text_of
from tidemill.model.names import KEY_LIMIT, check_key, check_task, nearest
from tidemill.model.view import TaskEntry
from tidemill.task import codec

if TYPE_CHECKING:
    from tidemill.app.tidemill import Tidemill


class Parameters(msgspec.Struct):
    """What the catalogue says of a task's parameters."""

    positional: list[str] = []
    properties: dict[str, Any] = {}
    required: list[str] = []
    more: bool = False


async def job_by_name(
    session: EngineSession,
    app: "Tidemill",
    task: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    options: Options,
) -> NewJob:
    """The job for a task known by name: from this app's code, else from the catalogue."""
    definition = app.registry.find(check_task(task))
    if definition is not None:
        entry = app.registry.entry_of(definition)
        body, key = definition.encode(args, kwargs), definition.key_of(args, kwargs)
    else:
        found = await session.entry(task)
        entry = found if found is not None else await _unknown(session, app, task, options)
        codec.check_plain([*args], tuples=True)  # what its annotations make of a list is not known here
        codec.check_plain({**kwargs}, tuples=True)
        key = _check_arguments(entry, args, kwargs)
        body = codec.encode((args, kwargs))
    defaults = Defaults(task, entry.queue, entry.priority, entry.timeout, entry.retry, entry.on_dead)
    if len(body) > (limit := app.settings.payload_limit):
        raise too_large(task, body, limit)
    said = unique_of(entry.unique, options)  # before anything else of it is worked out
    queues = {known.queue for known in session.catalogue.values()}
    resolved = resolve(app.registry, defaults, options, known_queues=queues)
    new = msgspec.structs.replace(resolved, id=options.id or new_id(), body=body, key=options.key or key)
    if said is None:
        return new
    if definition is not None:
        return with_key(new, said, definition.unique_text(body, said.parameters))
    return with_key(new, said, text_of(_named(entry, args, kwargs), said.parameters))


async def _unknown(session: EngineSession, app: "Tidemill", task: str, options: Options) -> TaskEntry:
    """It is not in our copy of the catalogue: allowed where the caller says which queue."""
    here = app.registry.task_names()
    if options.queue is not None:
        warn_of_task(task, [*here, *session.catalogue])
        return TaskEntry(name=task, queue=options.queue)
    published = await session.read_catalogue()
    if task in published:  # since our copy was read
        return published[task]
    known = [*here, *published]
    raise UnknownTask(
        f"no task {task!r} is known here or to any worker{nearest(task, known)} (to enqueue it all the same, "
        "give queue=)"
    )


def _named(entry: TaskEntry, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by their parameters, with defaults, as JSON has them; the members of a set are sorted."""
    known = msgspec.json.decode(entry.schema or b"{}", type=Parameters)
    defaults = None if entry.unique is None else entry.unique.defaults
    given = {**dict(zip(known.positional, args, strict=False)), **kwargs}
    named: dict[str, Any] = msgspec.json.decode(
        codec.encode({**msgspec.json.decode(defaults or b"{}"), **given})
    )
    for name, value in named.items():
        if isinstance(value, list) and known.properties.get(name, {}).get("uniqueItems"):
            named[name] = sorted(value, key=codec.canonical)
    return named


def _check_arguments(entry: TaskEntry, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
    """Refuse what cannot fit; returns the key. Types are for the worker to check."""
    if entry.schema is None:
        return None
    known = msgspec.json.decode(entry.schema, type=Parameters)
    given = {**dict(zip(known.positional, args, strict=False)), **kwargs}
    missing = [name for name in known.required if name not in given]
    extra = [name for name in kwargs if name not in known.properties]
    twice = [name for name in known.positional[: len(args)] if name in kwargs]
    if missing:
        raise BadArguments(f"{entry.name}: missing {', '.join(missing)}")
    if twice or (not known.more and (extra or len(args) > len(known.positional))):
        raise BadArguments(
            f"{entry.name} takes ({', '.join(known.properties)}); got {len(args)} in order and "
            f"{', '.join(kwargs) or 'none'} by name"
        )
    if entry.key is None:
        return None
    value: Any = given
    for field in entry.key.split("."):
        value = value.get(field) if isinstance(value, dict) else None
    return None if value is None else check_key(str(value)[:KEY_LIMIT])
