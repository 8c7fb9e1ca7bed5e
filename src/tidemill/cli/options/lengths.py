"""Lengths of time as options: 30, 500ms, 5m, 24h, 7d."""

from typing import Any

import click

from tidemill.task.settings.rules import seconds
from tidemill.task.settings.setting import BadValue


class LengthType(click.ParamType):  # type: ignore[type-arg]
    """A length of time in seconds, between two bounds."""

    name = "length"

    def __init__(self, least_s: float, most_s: float) -> None:
        self._read = seconds(least_s, most_s)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return self._read(value)
        except BadValue as error:
            self.fail(f"{value!r} is not {error}", param, ctx)
