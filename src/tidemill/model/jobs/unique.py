"""Unique keys: at most one job of a key, and what a call that meets one does.

A key belongs to a task: the same text of two tasks is two keys. There are two kinds, which never meet:

- The key of a live job, `until="end"` or `"start"`. The job holds it from its enqueue until it has ended, or
  until it starts. A run that is released or retried takes a key `until="start"` again if it is free, and
  goes without it otherwise. A replay takes its key again, and is refused if another job holds it.
- The key of a period: it lives for so long after the enqueue, whatever becomes of the job, also past its end
  and after it was dropped.

`UniqueOptions` is what people write, of a task or of a call. `UniqueKey` is what a job carries to the engine.
"""

import hashlib
from collections.abc import Mapping
from typing import Literal, get_args

import msgspec

from tidemill.model.errors import BadInput
from tidemill.model.names import check_unique
from tidemill.model.time import LONGEST, SECOND, Instant, Span

UniqueUntil = Literal["end", "start"]
OnConflict = Literal["existing", "replace", "refuse"]
"""existing: the call gets the job that is there. replace: it gives that job its payload, time and priority,
if it waits (one that runs counts as existing). refuse: `NotUnique`, and nothing is stored."""

SHOWN = 120
"""So many characters of arguments stand in a key as they are; of longer ones, their beginning and a hash."""
REPLACING_KEPT = 16
"""Of so many calls that replaced a job its id is remembered with it, so that a repeat changes nothing."""

MOST_EXACT = 1 << 53
"""Beyond this not every whole number is a float."""

_canonical = msgspec.json.Encoder(order="deterministic").encode


class UniqueKey(msgspec.Struct, frozen=True, kw_only=True):
    """The key of a new job."""

    key: str
    until: UniqueUntil = "end"
    period: Span | None = None
    """The key lives for so long after the enqueue; `until` means nothing then."""
    on_conflict: OnConflict = "existing"
    latest: Span | None = None
    """Replace never sets the due time later than this long after the job that is there was enqueued. If that
    has passed and the job is ready, it keeps its place (debounce)."""


class UniqueOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is said of uniqueness, of a task or of a call; None: not said."""

    unique: bool | None = None
    parameters: tuple[str, ...] = ()
    """The arguments that make the key; empty: all of them."""
    text: str | None = None
    """The key itself, in place of arguments."""
    until: UniqueUntil | None = None
    period: Span | None = None
    on_conflict: OnConflict | None = None
    debounce: Span | None = None
    debounce_max: Span | None = None
    throttle: Span | None = None
    defaults: bytes | None = None
    """Of the catalogue: JSON of the defaults of parameters, which are part of a call that leaves them out."""


def merge_unique(of_task: UniqueOptions | None, of_call: UniqueOptions | None) -> UniqueOptions | None:
    """What holds for a call: what it says, else what its task says; None: it is not unique. `BadInput` for
    what contradicts itself."""
    if of_call is not None and of_call.unique is False:
        said = msgspec.structs.replace(of_call, unique=None)
        if (said.until, said.period, said.on_conflict, said.debounce, said.debounce_max, said.throttle) != (
            None, None, None, None, None, None,
        ):  # fmt: skip
            raise BadInput("unique=False goes with nothing else: leave the other options of uniqueness out")
        return None
    if of_task is None or of_call is None:
        merged = of_call if of_task is None else of_task
    else:
        merged = msgspec.structs.replace(
            of_call,
            unique=of_task.unique if of_call.unique is None else of_call.unique,
            parameters=of_task.parameters,
            until=of_call.until or of_task.until,
            period=of_task.period if of_call.period is None else of_call.period,
            on_conflict=of_call.on_conflict or of_task.on_conflict,
            debounce=of_task.debounce if of_call.debounce is None else of_call.debounce,
            debounce_max=of_task.debounce_max if of_call.debounce_max is None else of_call.debounce_max,
            throttle=of_task.throttle if of_call.throttle is None else of_call.throttle,
            defaults=of_task.defaults,
        )
    if merged is None or merged.unique is False:
        return None
    _check_options(merged)
    return merged


def _check_options(said: UniqueOptions) -> None:
    """Refuse what contradicts itself."""
    if said.debounce_max is not None and said.debounce is None:
        raise BadInput("debounce_max= bounds debounce=: give both")
    if said.debounce is not None:
        _check_debounce(said)
    if said.throttle is not None:
        if said.period is not None or said.until is not None:
            raise BadInput(
                "throttle=60 means unique_for=60, the first call wins: leave unique_for= and "
                "unique_until= out"
            )
        if said.on_conflict == "replace":
            raise BadInput('throttle= lets the first call win: on_conflict is "existing" or "refuse" then')
    if said.period is not None and said.until is not None:
        raise BadInput("unique_for= is a period and unique_until= the life of a job: give one of them")
    if said.unique is None and said.debounce is None and said.throttle is None and said != UniqueOptions():
        raise BadInput(
            "unique_until=, unique_for= and on_conflict= say how a call is unique: give unique=True, or a "
            "text that is its key, too"
        )


def _check_debounce(said: UniqueOptions) -> None:
    if said.throttle is not None or said.period is not None:
        raise BadInput(
            "debounce= lets the last call win and throttle= or unique_for= the first: give one of them"
        )
    if said.until == "end":
        raise BadInput('debounce= means unique_until="start": with "end" a call during a run would be lost')
    if said.on_conflict not in (None, "replace"):
        raise BadInput(f'debounce= means on_conflict="replace", not {said.on_conflict!r}')
    if said.debounce_max is not None and said.debounce_max < (said.debounce or 0):
        raise BadInput(
            f"debounce_max={said.debounce_max / SECOND:g} is shorter than debounce="
            f"{(said.debounce or 0) / SECOND:g}: it is the longest that calls can put a job off"
        )


def key_of_call(said: UniqueOptions, text: str) -> UniqueKey:
    """The key of a job, of what holds for its call."""
    if said.debounce is not None:
        return UniqueKey(key=text, until="start", on_conflict="replace", latest=said.debounce_max)
    period = said.throttle if said.throttle is not None else said.period
    return UniqueKey(
        key=text, until=said.until or "end", period=period, on_conflict=said.on_conflict or "existing"
    )


def text_of(arguments: Mapping[str, object], parameters: tuple[str, ...]) -> str:
    """The key that arguments make: their JSON, of bounded length. Equal arguments make equal keys, also 1 and
    1.0: where annotations are not known, and in defaults, nothing has made a float of an int."""
    chosen = {name: arguments.get(name) for name in parameters} if parameters else dict(arguments)
    encoded = _canonical(_same_numbers(chosen))
    text = encoded.decode()
    if len(text) <= SHOWN:
        return text
    return f"{text[:SHOWN]}... {hashlib.blake2b(encoded, digest_size=16).hexdigest()}"


def _same_numbers(value: object) -> object:
    """JSON in which numbers that are equal are written alike."""
    if isinstance(value, dict):
        return {name: _same_numbers(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_same_numbers(each) for each in value]
    if isinstance(value, float) and value.is_integer() and abs(value) <= MOST_EXACT:
        return int(value)
    return value


def check_unique_key(unique: UniqueKey, *, parents: bool) -> None:
    """Refuse what no engine could keep. `parents`: whether the new job waits for others."""
    if not isinstance(unique, UniqueKey):
        raise BadInput(f"the unique key of a job is a UniqueKey, not {type(unique).__name__}")
    check_unique(unique.key)
    if unique.until not in get_args(UniqueUntil):
        raise BadInput(f'unique_until is "end" or "start", not {unique.until!r}')
    if unique.on_conflict not in get_args(OnConflict):
        raise BadInput(f'on_conflict is "existing", "replace" or "refuse", not {unique.on_conflict!r}')
    for span, name in (unique.period, "unique_for"), (unique.latest, "debounce_max"):
        if span is not None and (type(span) is not int or not 0 < span <= LONGEST):
            raise BadInput(f"{name} must be longer than 0 s")
    if unique.latest is not None and unique.on_conflict != "replace":
        raise BadInput('debounce_max bounds what replaces: it goes with on_conflict="replace"')
    if unique.on_conflict == "replace" and parents:
        raise BadInput(
            'after= cannot be used with on_conflict="replace" or debounce=: the job that is there has '
            "parents of its own, or none"
        )


def replaced_due(unique: UniqueKey, due_at: Instant, created_at: Instant) -> Instant:
    """When a job is due that a call replaces, which asks for `due_at`."""
    return due_at if unique.latest is None else min(due_at, created_at + unique.latest)
