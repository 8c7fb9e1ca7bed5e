"""Moments as options: 2030-01-31T18:00:00Z, or a length of time ago."""

from datetime import datetime
from typing import Any

import click

from tidemill.cli.options.lengths import LengthType
from tidemill.model.time import LONGEST, SECOND, Instant, instant_of


class MomentType(click.ParamType):  # type: ignore[type-arg]
    """A moment with its time zone."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a moment such as 2030-01-31T18:00:00Z", param, ctx)
        if moment.tzinfo is None:
            self.fail(f"{value!r} has no time zone; add Z for UTC, or +02:00", param, ctx)
        return moment


class PastType(click.ParamType):  # type: ignore[type-arg]
    """A moment, or how long ago: 90s, 15m, 24h."""

    name = "moment"
    _moment = MomentType()
    _length = LengthType(0, LONGEST / SECOND)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Instant:
        if isinstance(value, int):
            return value
        if "-" in value:
            return instant_of(self._moment.convert(value, param, ctx))
        try:
            ago = self._length.convert(value, param, ctx)
        except click.BadParameter:
            text = f"{value!r} is neither a moment such as 2030-01-31T18:00:00Z nor a length of time ago"
            self.fail(f"{text} such as 15m", param, ctx)
        return max(0, instant_of(datetime.now().astimezone()) - round(ago * SECOND))
