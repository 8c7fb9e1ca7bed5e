"""What a value may be. Every rule takes text (from files and the environment) or the value itself."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from tidemill.model.errors import BadInput
from tidemill.model.names import NAMESPACE_RULE, check_namespace, check_queue
from tidemill.model.scaling.process_range import ProcessRange
from tidemill.task.settings.setting import BadValue, Rule

if TYPE_CHECKING:
    from tidemill.model.queues.queue import Keep

_LENGTH = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|s|m|h|d|)")
_UNIT_S = {"ms": 0.001, "": 1.0, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_LENGTHS = ("30", "500ms", "5m", "24h", "7d")
"""Examples of lengths."""
_SIZE = re.compile(r"(\d+)\s*(B|KiB|MiB|)", re.IGNORECASE)
_UNIT_BYTES = {"": 1, "b": 1, "kib": 1 << 10, "mib": 1 << 20}
_NOTHING = ("", "none", "never")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:(?!/?[^/])|[a-z][a-z0-9+.-]*://")
_APP = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")

T = TypeVar("T")


def optional(rule: Rule[T]) -> Rule[T | None]:
    """Nothing ("", none, never), or what the rule admits."""

    def read(value: object) -> T | None:
        if isinstance(value, str) and value.strip().lower() in _NOTHING:
            return None
        return rule(value)

    return read


def unless_empty(rule: Rule[T]) -> Rule[T | None]:
    """What the rule admits; an empty value leaves the choice to others."""

    def read(value: object) -> T | None:
        return None if isinstance(value, str) and not value.strip() else rule(value)

    return read


def whole(least: int, most: int) -> Rule[int]:
    """A whole number in a range."""

    def read(value: object) -> int:
        try:
            number = int(value.strip().replace("_", "")) if isinstance(value, str) else value
        except ValueError:
            number = None
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise BadValue(f"a whole number between {least:,} and {most:,}")
        return number

    return read


def processes(value: object) -> ProcessRange:
    """A number of worker processes, or from a least to a most: 4, 1..4."""
    try:
        return ProcessRange.parse(value)
    except BadInput as wrong:
        raise BadValue(str(wrong)) from None


def seconds(least_s: float, most_s: float) -> Rule[float]:
    """A length of time in seconds: 30, 0.5, 500ms, 30s, 5m, 24h, 7d."""
    allowed = [text for text in _LENGTHS if least_s <= (_seconds_of(text) or 0) <= most_s]
    examples = " or ".join([", ".join(allowed[:2]), *allowed[2:3]])

    def read(value: object) -> float:
        number = _seconds_of(value)
        if number is None or not least_s <= number <= most_s:
            raise BadValue(
                f"a length of time between {_length(least_s)} and {_length(most_s)}, such as {examples}"
            )
        return number

    return read


def _length(seconds: float) -> str:
    """As it can be written: `31d`, or `90 s` where no longer unit fits."""
    for unit in ("d", "h", "m"):
        if seconds >= _UNIT_S[unit] and seconds % _UNIT_S[unit] == 0:
            return f"{seconds / _UNIT_S[unit]:,.0f}{unit}"
    return f"{seconds:g} s"


def _seconds_of(value: object) -> float | None:
    if isinstance(value, str):
        found = _LENGTH.fullmatch(value.strip())
        return float(found[1]) * _UNIT_S[found[2]] if found else None
    if isinstance(value, timedelta):
        return value.total_seconds()
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


def size(least: int, most: int) -> Rule[int]:
    """A number of bytes: 65536, 64KiB, 1MiB."""

    def read(value: object) -> int:
        number = value
        if isinstance(value, str):
            found = _SIZE.fullmatch(value.strip())
            number = int(found[1]) * _UNIT_BYTES[found[2].lower()] if found else None
        if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
            raise BadValue(f"a size between {least:,} and {most:,} bytes, such as 65536 or 64KiB")
        return number

    return read


def one_of(*choices: str) -> Rule[str]:
    """One of some words."""

    def read(value: object) -> str:
        if value not in choices:
            raise BadValue("one of " + ", ".join(choices))
        return str(value)

    return read


def url(value: object) -> str:
    """A URL; whether its scheme can be opened is for the engine registry to say."""
    if not isinstance(value, str) or not _SCHEME.match(value.strip()):
        raise BadValue("a URL such as sqlite:///tidemill.db (a path of a file alone is not one)")
    return value.strip()


def app(value: object) -> str:
    """Where the application is: module:attribute."""
    if not isinstance(value, str) or not _APP.fullmatch(value.strip()):
        raise BadValue("module:attribute, such as shop.jobs:app")
    return value.strip()


def _named(check: Callable[[str], str], name: object, what: str) -> str:
    try:
        return check(name)  # type: ignore[arg-type]  # refuses what is not a string
    except BadInput as wrong:
        raise BadValue(f"{what} ({wrong})") from None


def namespace(value: object) -> str:
    """A namespace's name."""
    try:
        return check_namespace(value.strip())  # type: ignore[attr-defined]
    except (AttributeError, BadInput):
        raise BadValue(f"a namespace: {NAMESPACE_RULE}") from None


def queues(value: object) -> tuple[str, ...]:
    """Queue names, separated by commas."""
    if isinstance(value, str):
        value = [part.strip() for part in value.split(",") if part.strip()]
    if not isinstance(value, list | tuple):
        raise BadValue("names of queues, separated by commas")
    return tuple(
        dict.fromkeys(_named(check_queue, name, "names of queues, separated by commas") for name in value)
    )


def keep(value: object) -> "Keep":
    """How long finished jobs stay: an age, a count, both ("24h 1000000"), or forever."""
    from tidemill.model.queues.queue import COUNT_LIMIT, Keep

    if isinstance(value, Keep):
        return value
    age: float | None = None
    count: int | None = None
    try:
        if not isinstance(value, str) or not (parts := value.replace(",", " ").split()):
            raise BadValue
        for part in parts if parts != ["forever"] else []:
            if part.isdecimal() and count is None:
                count = whole(0, COUNT_LIMIT)(part)
            elif not part.isdecimal() and age is None:
                age = seconds(0, 100 * 366 * 86_400)(part)
            else:
                raise BadValue
    except BadValue:
        raise BadValue(
            'an age, a number of jobs, both, or "forever", such as 7d, 1000 or "24h 1000000"'
        ) from None
    return Keep(age=age, count=count)
