"""Which names are allowed, and what is said of the others.

The checks are cached: they stand on the hot path of enqueue, where the same few names come by.
"""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, wraps

from tidemill.model.errors import BadInput

_NAMESPACE = re.compile(r"[a-z][a-z0-9_]{0,39}")
_QUEUE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}")
_TASK = re.compile(r"[^\s\x00-\x1f\x7f\ud800-\udfff]{1,200}")
_NOT_IN_KEY = re.compile(r"[\x00-\x1f\ud800-\udfff]")
"""Control characters separate the parts of a lane's group; no engine can store half a character."""

KEY_LIMIT = 200
"""The longest key (tenant, customer, ...) in characters: it is part of an index."""
UNIQUE_LIMIT = 200
"""The longest unique key, in characters."""
NAMESPACE_RULE = "a lower-case letter, then up to 39 letters, digits or _"


def _cached(check: Callable[[str], str]) -> Callable[[str], str]:
    cached = lru_cache(4_096)(check)

    @wraps(check)
    def checked(name: str) -> str:
        try:
            return cached(name)
        except TypeError:  # a list, say, cannot be cached; it is no name either
            return check(name)

    return checked


@_cached
def check_namespace(name: str) -> str:
    """A namespace is a PostgreSQL schema, a Redis prefix and an AMQP prefix at once."""
    return _check(_NAMESPACE, name, "namespace", NAMESPACE_RULE)


@_cached
def check_queue(name: str) -> str:
    """A queue's name appears in URLs, metrics and signals."""
    return _check(_QUEUE, name, "queue name", "a letter or digit, then up to 99 letters, digits or _ . : -")


@_cached
def check_task(name: str) -> str:
    """A task's name is usually module.function."""
    return _check(_TASK, name, "task name", "1 to 200 characters without spaces or control characters")


def check_key(key: str | None) -> str | None:
    """A job's key; control characters are kept for the engine's own use in lane groups."""
    if key is None:
        return None
    if not isinstance(key, str):
        raise BadInput(f"a key is a string, not {type(key).__name__}; convert it before enqueue")
    if len(key) > KEY_LIMIT or _NOT_IN_KEY.search(key):
        raise BadInput(f"a key has at most {KEY_LIMIT} characters and no control characters: {key[:40]!r}")
    return key


def check_unique(key: str) -> str:
    """A unique key: a text, which is shown with the job and compared as it is."""
    if not isinstance(key, str):
        raise BadInput(f"a unique key is a string, not {type(key).__name__}; convert it before enqueue")
    if not 1 <= len(key) <= UNIQUE_LIMIT or _NOT_IN_KEY.search(key):
        raise BadInput(f"a unique key has 1 to {UNIQUE_LIMIT} characters, none of control: {key[:40]!r}")
    return key


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not known: `; did you mean ...?` if one is close, else nothing."""
    from difflib import get_close_matches  # for errors only, and slow to import

    close = get_close_matches(name, list(known), n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""


def is_class_name(text: str) -> bool:
    """Whether this could be a class's qualified name: `shop.make.<locals>.Declined`."""
    return all(part.isidentifier() or part == "<locals>" for part in text.split("."))


def _check(pattern: re.Pattern[str], name: str, what: str, rule: str) -> str:
    if not isinstance(name, str) or not pattern.fullmatch(name):
        raise BadInput(f"{name!r} is not a {what}: {rule}")
    return name


def qualified_name(of: type) -> str:
    """`OSError`, `shop.errors.Declined`: how a class is known where its code may not be."""
    return of.__qualname__ if of.__module__ == "builtins" else f"{of.__module__}.{of.__qualname__}"
