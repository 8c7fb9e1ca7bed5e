"""The layers of a queue's options, the same on every engine: how they are read and changed.

An engine stores the layers of a queue as one text, with a version that grows with every change, and beside
it the options in force. A change is worked out here from what was read. It is stored only if the version is
still the same; otherwise it is worked out again.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import NamedTuple, TypeAlias

import msgspec

from tidemill.engine.shared.checks import check_batch, check_number, check_text
from tidemill.model.errors import BadInput, EngineUnavailable, QueueChanged
from tidemill.model.names import check_queue
from tidemill.model.queues.layers import (
    Declaration,
    Fields,
    Layers,
    check_fields,
    check_overrides,
    effective,
    read_stored,
    with_declaration,
    with_overrides,
    without_declaration,
    without_overrides,
)
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import Instant
from tidemill.model.view import QueueInfo

TRIES = 100
"""How often a change of layers is worked out again because another one came first."""

_layers = msgspec.json.Decoder(Layers).decode
_encode = msgspec.json.Encoder(order="sorted").encode
encode_options = _encode

log = logging.getLogger("tidemill.engine")
_logged: set[tuple[str, str]] = set()


class StoredQueue(NamedTuple):
    """What an engine has of a queue's options. A queue that is not there: version 0, and nothing."""

    options: bytes = b"{}"
    layers: bytes = b"{}"
    version: int = 0


class LayerChange(NamedTuple):
    """What an engine has to store."""

    layers: bytes
    options: QueueOptions | None
    """None: those in force stay as they are."""
    detail: str
    """For the audit."""


Work: TypeAlias = Callable[[Layers], tuple[Layers, str]]
"""From the layers as they are to what they become, with the audit's words for it."""


def change_of(name: str, stored: StoredQueue, work: Work) -> LayerChange | None:
    """What to store; None: nothing changes."""
    before, _ = read_layers(stored.layers)
    after, detail = work(before)
    if after == before:
        return None
    found = effective(after)
    report(name, found.problems)
    in_force = found.options if found.options != read_stored(stored.options).options else None
    return LayerChange(_encode(after), in_force, detail)


def read_layers(stored: bytes) -> tuple[Layers, tuple[str, ...]]:
    """The layers, and what is wrong with them: those that cannot be read say nothing."""
    try:
        return _layers(stored), ()
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return Layers(), (f"what was declared and overridden cannot be read: {error}",)


async def change_layers(
    name: str,
    work: Work,
    *,
    read: Callable[[], Awaitable[StoredQueue]],
    write: Callable[[StoredQueue, LayerChange], Awaitable[bool]],
    version: int | None = None,
    stored: StoredQueue | None = None,
) -> bool:
    """Compare and set: read, work it out, write if the version is still the one that was read. `stored`: what
    was read already. False: nothing changes."""
    for _ in range(TRIES):
        stored = stored or await read()
        change = change_of(name, stored, work)
        if change is None:
            return False
        check_version(name, stored, version)
        if await write(stored, change):
            return True
        stored = None
    raise EngineUnavailable(f"the options of the queue {name!r} change all the time; try again")


def declaring(app: str, declaration: Declaration) -> Work:
    return lambda layers: (with_declaration(layers, app, declaration), "")


def retiring(app: str, declared_at: Instant) -> Work:
    return lambda layers: (without_declaration(layers, app, declared_at), app)


def overriding(fields: Fields, *, by: str, why: str, at: Instant) -> Work:
    def work(layers: Layers) -> tuple[Layers, str]:
        check_overrides(layers, fields)
        shown = ", ".join(f"{name}={_encode(value).decode()}" for name, value in fields.items())
        return with_overrides(layers, fields, by=by, why=why, at=at), f"{shown}: {why}" if why else shown

    return work


def resetting(names: Iterable[str] | None) -> Work:
    listed = None if names is None else sorted(names)
    return lambda layers: (
        without_overrides(layers, listed),
        ", ".join(sorted(layers.overrides) if listed is None else listed),
    )


def check_version(name: str, stored: StoredQueue, version: int | None) -> None:
    """`QueueChanged` unless the queue is as the caller has read it."""
    if version is not None and version != stored.version:
        raise QueueChanged(
            f"the options of the queue {name!r} have changed meanwhile (version {stored.version}, not "
            f"{version}): read them again"
        )


def check_declare(app: str, declarations: Mapping[str, Declaration]) -> None:
    """Refuse what cannot be stored, or makes no sense."""
    check_app(app)
    check_batch(len(declarations))
    for name, each in declarations.items():
        check_queue(name)
        check_number(each.declared_at, "declared_at")
        check_fields(each.fields, f"the queue {name!r}")
        check_fields(each.defaults, f"the queue {name!r}")
        _check_texts({**each.fields, **each.defaults})


def check_app(app: str) -> None:
    """Refuse what is no name of an app."""
    if not check_text(app, "the name of an app"):
        raise BadInput("a declaration has the name of its app")


def check_set(name: str, fields: Fields, by: str, why: str, version: int | None) -> None:
    """Refuse an override that cannot be stored."""
    check_text(name, "a name")
    check_text(by, "by")
    check_text(why, "a reason")
    if not fields:
        raise BadInput("an override names the fields that it sets: concurrency=3")
    _check_texts(fields)
    if version is not None:
        check_number(version, "a version")


def check_reset(name: str, names: Iterable[str] | None, by: str, version: int | None) -> None:
    """The same of a reset."""
    if version is not None:
        check_number(version, "a version")
    check_text(name, "a name")
    check_text(by, "by")
    for field in names or ():
        check_text(field, "the name of an option")


def _check_texts(fields: Fields) -> None:
    try:
        check_text(_encode(fields).decode(), "an option")
    except (TypeError, UnicodeError, msgspec.MsgspecError) as error:
        raise BadInput(f"an option is a JSON value: {error}") from None


def info_of(
    name: str, stored: StoredQueue, created_at: Instant, paused: tuple[Instant | None, str, str]
) -> QueueInfo:
    """A queue as it is listed."""
    found = read_stored(stored.options)
    layers, unreadable = read_layers(stored.layers)
    problems = (*unreadable, *(found.problems or effective(layers).problems))
    report(name, problems)
    paused_at, paused_by, paused_why = paused
    return QueueInfo(
        name=name,
        options=found.options,
        created_at=created_at,
        paused_at=paused_at,
        paused_by=paused_by,
        paused_why=paused_why,
        declared=layers.declared,
        overrides=layers.overrides,
        version=stored.version,
        problems=problems,
    )


def report(name: str, problems: Iterable[str]) -> None:
    """One line in the log for each that is new to this process."""
    for problem in problems:
        if (name, problem) not in _logged and len(_logged) < 1_000:
            _logged.add((name, problem))
            log.warning("the queue %s: %s; the rest of its options is in force", name, problem)
