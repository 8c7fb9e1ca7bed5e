"""A queue's options in two layers: what code declares, and what operators set over it.

**Declared.** Each app that declares a queue has one declaration of it: a map of the fields that its code
names, with the moment at which the member started that said so. A later start of the same app replaces the
whole map, so a field that was deleted from the code goes away. An earlier start changes nothing: newer code
has spoken. Where two apps name the same field, the declaration with the highest (declared_at, app) counts.

**Defaults.** An app's own settings (what is kept of finished jobs) are weaker than any declared field. An app
that only *uses* a queue has nothing but those, and they count only while no app declares the queue.

**Overrides.** What operators set, field by field, with who, why and when. They count over every declaration
until they are reset.

Values are JSON values, and null is one: "no limit". A field that this release cannot read stays in its layer
for the release that can. It is left out of the options in force, and named as a problem.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

import msgspec

from tidemill.model.errors import BadInput
from tidemill.model.options import unknown_option
from tidemill.model.queues.queue import QueueOptions
from tidemill.model.time import Instant

Fields: TypeAlias = dict[str, Any]
"""Options by name, as JSON values."""

NAMES = tuple(field.name for field in msgspec.structs.fields(QueueOptions))
AT_ENQUEUE = ("timeout", "retry")
"""Written into each job when it is enqueued, by the code that enqueues it: no override could reach them."""


class Declaration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one app says of one queue."""

    fields: Fields = {}
    defaults: Fields = {}
    """What the app's settings say of all its queues."""
    declares: bool = True
    """False: the app only uses the queue."""
    declared_at: Instant = 0
    """When the member started whose code says this, by the engine's clock."""


class Override(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an operator set for one field."""

    value: Any
    by: str = ""
    why: str = ""
    at: Instant = 0


class Layers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that is said of one queue."""

    declared: dict[str, Declaration] = {}
    """By app."""
    overrides: dict[str, Override] = {}
    """By field."""


class Effective(NamedTuple):
    """The options in force, and what had to be left out of them."""

    options: QueueOptions
    problems: tuple[str, ...] = ()


def with_declaration(layers: Layers, app: str, declaration: Declaration) -> Layers:
    """An app says this. The same layers if code that started later has spoken."""
    known = layers.declared.get(app)
    if known is not None and declaration.declared_at < known.declared_at:
        return layers
    return msgspec.structs.replace(layers, declared={**layers.declared, app: declaration})


def without_declaration(layers: Layers, app: str, declared_at: Instant) -> Layers:
    """An app's code no longer says it. The same layers if it has spoken since."""
    known = layers.declared.get(app)
    if known is None or known.declared_at != declared_at:
        return layers
    rest = {name: each for name, each in layers.declared.items() if name != app}
    return msgspec.structs.replace(layers, declared=rest)


def with_overrides(layers: Layers, fields: Fields, *, by: str, why: str, at: Instant) -> Layers:
    """An operator sets these fields. What is set just so keeps its time: a repeat changes nothing."""
    new = {name: Override(value=value, by=by, why=why, at=at) for name, value in fields.items()}
    kept = {name: known for name, known in layers.overrides.items() if _same(known, new.get(name))}
    return msgspec.structs.replace(layers, overrides={**layers.overrides, **new, **kept})


def without_overrides(layers: Layers, names: Iterable[str] | None) -> Layers:
    """An operator takes these back; None: all."""
    gone = set(layers.overrides if names is None else names)
    rest = {name: each for name, each in layers.overrides.items() if name not in gone}
    return layers if rest == layers.overrides else msgspec.structs.replace(layers, overrides=rest)


def declared_fields(layers: Layers) -> Fields:
    """What all apps together declare."""
    in_order = sorted(layers.declared.items(), key=lambda each: (each[1].declared_at, each[0]))
    declaring = [each for _, each in in_order if each.declares]
    merged: Fields = {}
    for each in declaring or [each for _, each in in_order]:
        merged |= each.defaults
    for each in declaring:
        merged |= each.fields
    return merged


def effective(layers: Layers) -> Effective:
    """Overrides over declarations, field by field."""
    overridden = {name: each.value for name, each in layers.overrides.items()}
    return read_fields({**declared_fields(layers), **overridden})


def read_fields(fields: Mapping[str, Any]) -> Effective:
    """The options that these fields make. Whatever cannot be read, or contradicts the rest, is left out."""
    good: Fields = {}
    problems = []
    for name, value in fields.items():
        if name not in NAMES:
            problems.append(f"{name}: no option of this release")
        elif value is not None:
            try:
                _convert({"fair_by": "key", name: value} if name == "weights" else {name: value})
                good[name] = value
            except (msgspec.ValidationError, BadInput) as error:
                problems.append(f"{name}: {error}")
    if "weights" in good and not _convert({**good, "weights": {}}).keyed:
        problems.append("weights: nothing in force cuts the queue's lanes by key")
        del good["weights"]
    return Effective(_convert(good), tuple(problems))


def read_value(name: str, value: Any) -> Any:
    """One option as `QueueOptions` has it; as it is stored if this release cannot read it."""
    try:
        alone = {"fair_by": "key", name: value} if name == "weights" else {name: value}
        return value if value is None else getattr(_convert(alone), name)
    except (AttributeError, msgspec.ValidationError, BadInput):
        return value


def declaring_apps(layers: Layers) -> dict[str, str]:
    """For each declared option the app that counts."""
    in_order = sorted(layers.declared.items(), key=lambda each: (each[1].declared_at, each[0]))
    return {name: app for app, each in in_order if each.declares for name in each.fields}


def read_stored(options: bytes) -> Effective:
    """Options as they are stored; also such as another release has written."""
    try:
        return Effective(_decode(options))
    except (msgspec.MsgspecError, UnicodeDecodeError, BadInput):
        pass
    try:
        fields = msgspec.json.decode(options, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        return Effective(QueueOptions(), (f"the options cannot be read: {error}",))
    return read_fields(fields)


def check_fields(fields: Mapping[str, Any], where: str = "a queue") -> None:
    """`BadInput` for what is no option, cannot be read, or contradicts itself."""
    for name in fields:
        if name not in NAMES:
            raise unknown_option(where, name, NAMES)
    _, problems = read_fields(fields)
    if problems:
        raise BadInput(f"{where}: {problems[0]}")


def check_overrides(layers: Layers, fields: Mapping[str, Any]) -> None:
    """`BadInput` for what no override can be, or what contradicts what is in force."""
    for name in fields:
        if name in AT_ENQUEUE:
            raise BadInput(
                f"{name} is written into each job when it is enqueued: change it in the code that enqueues"
            )
    unkeyed = {name: value for name, value in fields.items() if name != "weights"}
    check_fields(unkeyed, "an override")
    if fields.get("weights") is not None:
        check_fields({"weights": fields["weights"], "fair_by": "key"}, "an override")
    before = set(effective(layers).problems)
    after = effective(with_overrides(layers, dict(fields), by="", why="", at=0)).problems
    for problem in after:
        if problem not in before:
            raise BadInput(
                f"an override that contradicts what is in force: {problem}; it works together with "
                'fair_by="key" or per_key='
            )


def fields_of(options: QueueOptions) -> Fields:
    """The fields that differ from what a queue is without them."""
    usual = QueueOptions()
    said = {name: getattr(options, name) for name in NAMES}
    return {name: field_value(value) for name, value in said.items() if value != getattr(usual, name)}


def field_value(value: object) -> Any:
    """An option as a layer has it: `Limit(concurrency=5)` is {"concurrency": 5}."""
    return msgspec.to_builtins(value)


def _same(known: Override, new: Override | None) -> bool:
    return new is not None and (known.value, known.by, known.why) == (new.value, new.by, new.why)


def _convert(fields: Fields) -> QueueOptions:
    return msgspec.convert(fields, QueueOptions)


_decode = msgspec.json.Decoder(QueueOptions).decode
