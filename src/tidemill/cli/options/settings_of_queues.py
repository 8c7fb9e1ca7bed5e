"""A queue's options on the command line: `concurrency=5 rate=100/m per_key=2`. `none` says "no limit"."""

from collections.abc import Callable
from typing import Any

import click
import msgspec

from tidemill.model.errors import BadInput
from tidemill.model.queues.queue import Limit, Rate
from tidemill.task.settings.rules import keep
from tidemill.task.settings.setting import BadValue

FORMS = {
    "concurrency": "a whole number such as 5",
    "rate": "100/m or '100/m smooth'",
    "per_key": "2, 100/m or 2,100/m",
    "limits": "acme:50,other:100/m",
    "per_task": "shop.mail:5,shop.sms:100/m",
    "per_worker": "4, 10/s or 4,10/s",
    "fair_by": "key",
    "weights": "gold:10,silver:3",
    "keep": "7d, 1000, 7d,1000 or forever",
    "keep_completed": "7d, 1000, 7d,1000 or forever",
    "keep_dead": "7d, 1000, 7d,1000 or forever",
    "keep_cancelled": "7d, 1000, 7d,1000 or forever",
    "keep_body": "yes or no",
}
"""What each takes; all take `none`. A limit can be JSON too: {"concurrency": 5, "rate": "100/m"}."""
_YES_NO = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


class SettingType(click.ParamType):  # type: ignore[type-arg]
    """One `NAME=VALUE`."""

    name = "setting"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Any]:
        if isinstance(value, tuple):
            return value
        name, given, text = value.partition("=")
        name, text = name.strip().replace("-", "_"), text.strip()
        if not given or not name:
            self.fail(f"{value!r}: write NAME=VALUE, such as concurrency=5 or rate=100/m", param, ctx)
        read = _READ.get(name)
        if read is None:  # the action knows the names, and says which is nearest
            return name, text
        try:
            return name, None if text.lower() == "none" else read(text)
        except (ValueError, BadInput, BadValue, msgspec.MsgspecError) as error:
            why = f": {error}" if isinstance(error, BadInput) else ""
            self.fail(f"{name}={text} cannot be read{why}; {name} takes {FORMS[name]}, or none", param, ctx)


def _limit(text: str) -> Limit:
    if text.startswith("{"):
        return _limit_of(msgspec.json.decode(text))
    limit = Limit()
    for part in text.split(","):
        if "/" in part and limit.rate is None:
            limit = Limit(concurrency=limit.concurrency, rate=Rate.parse(part.strip()))
        elif "/" not in part and limit.concurrency is None:
            limit = Limit(concurrency=int(part), rate=limit.rate)
        else:
            raise ValueError(text)
    return limit


def _limit_of(value: Any) -> Limit:
    if value is None or value == "none":  # of a mapping: none for this one
        return Limit()
    if isinstance(value, str | int) and not isinstance(value, bool):
        return _limit(str(value))
    if not isinstance(value, dict):
        raise ValueError(value)
    if isinstance(value.get("rate"), dict):
        return msgspec.convert(value, Limit)
    return Limit(**value)


def _mapping(read: Callable[[Any], Any]) -> Callable[[str], dict[str, Any]]:
    def each(text: str) -> dict[str, Any]:
        if text.startswith("{"):
            return {key: read(value) for key, value in msgspec.json.decode(text, type=dict[str, Any]).items()}
        named: dict[str, Any] = {}
        for part in text.split(","):
            key, given, value = part.rpartition(":")
            if not given or not key or key in named:
                raise ValueError(text)
            named[key.strip()] = read(value.strip())
        return named

    return each


def _yes_or_no(text: str) -> bool:
    if text.lower() not in _YES_NO:
        raise ValueError(text)
    return _YES_NO[text.lower()]


_READ: dict[str, Callable[[str], Any]] = {
    "concurrency": int,
    "rate": Rate.parse,
    "per_key": _limit,
    "limits": _mapping(_limit_of),
    "per_task": _mapping(_limit_of),
    "per_worker": _limit,
    "fair_by": str,
    "weights": _mapping(int),
    "keep": keep,
    "keep_completed": keep,
    "keep_dead": keep,
    "keep_cancelled": keep,
    "keep_body": _yes_or_no,
}
