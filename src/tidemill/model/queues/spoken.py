"""A queue's options in words that a person reads."""

from typing import Any

import msgspec

from tidemill.model.queues.queue import Keep, Limit, Rate

_LENGTHS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def words_of_option(name: str, value: Any) -> str:
    """`5 at once`, `100 in 60 s`, `gold: 10, free: 1`; None is "no limit"."""
    if value is None:
        return "as usual" if name.startswith("keep") else "none" if name == "fair_by" else "no limit"
    if name == "concurrency" and isinstance(value, int):
        return f"{value} at once"
    return _words(value)


def words_of_limit(limit: Limit | None) -> str:
    """`5 at once, 100 in 60 s`; empty if it limits nothing."""
    if not limit:
        return ""
    parts = [] if limit.concurrency is None else [f"{limit.concurrency} at once"]
    return ", ".join(parts if limit.rate is None else [*parts, _words(limit.rate)])


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Rate):
        return f"{value.count} in {value.per:g} s{', evenly spaced' if value.smooth else ''}"
    if isinstance(value, Limit):
        return words_of_limit(value) or "no limit"
    if isinstance(value, Keep):
        return _words_of_keep(value)
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_words(each)}" for key, each in value.items()) or "none"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _words_of_keep(keep: Keep) -> str:
    if keep.nothing:
        return "nothing"
    parts = [] if keep.age is None else [f"for {_length(keep.age)}"]
    if keep.count is not None:
        parts.append(f"the newest {keep.count}")
    return ", ".join(parts) or "for ever"


def _length(seconds: float) -> str:
    for unit, name in _LENGTHS:
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds / unit:g} {name}"
    return f"{seconds:g} s"
