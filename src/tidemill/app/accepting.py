"""Checks of the options of public calls: names that do not exist, and values that no option takes.

A wrong name or a wrong type is answered at the line where it stands, by what would be right there.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from tidemill.model.errors import BadInput
from tidemill.model.jobs.retry import Retry
from tidemill.model.options import check_options
from tidemill.model.queues.queue import Limit, Rate

P = ParamSpec("P")
T = TypeVar("T")


def accepts(where: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """For methods that people call with options, by the name that people know: `app.queue`. A call that does
    not fit the parameters is `BadInput`."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        signature = inspect.signature(function)

        @wraps(function)
        def checked(*args: P.args, **kwargs: P.kwargs) -> T:
            check_options(where, signature, args, kwargs)
            return function(*args, **kwargs)

        return checked

    return decorate


def yes_or_no(name: str, value: object) -> bool:
    """A switch. Text is refused: "no" would count as True."""
    if not isinstance(value, bool):
        raise BadInput(f"{name}= is True or False, not {value!r}")
    return value


def read_retry(value: object) -> Retry | None:
    """A policy, or None."""
    if value is None or isinstance(value, Retry):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        raise BadInput(f"retry= takes a Retry(attempts={value}), not {value}")
    raise BadInput(f"retry= takes a Retry(...), not {type(value).__name__}")


def read_limit(name: str, value: object) -> Limit | None:
    """A limit; a bare number is a concurrency, a text or a `Rate` a rate."""
    if value is None or isinstance(value, Limit):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return Limit(concurrency=value)
    if isinstance(value, Rate):
        return Limit(rate=value)
    if isinstance(value, str):
        try:
            return Limit(rate=Rate.parse(value))
        except BadInput as error:
            raise BadInput(f"{name}=: {error}; or a number of jobs at once, without quotes") from None
    raise BadInput(
        f'{name}= takes a number of jobs at once, a rate such as "100/m", or a '
        f'Limit(concurrency=5, rate="100/m"); not {value!r}'
    )


def read_mapping(name: str, value: object, what: str) -> Mapping[Any, Any]:
    """A dict, or nothing."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise BadInput(f"{name}= takes a dict of {what}, not {type(value).__name__}")
    return value
