"""`tidemill queues`: the queues and how they are configured."""

from typing import TYPE_CHECKING, Any

import click
import msgspec

from tidemill.cli.options.picking import json_option
from tidemill.cli.options.where import Where, where_options, with_engine
from tidemill.cli.output.shaping import queue_shape
from tidemill.cli.output.text import Column, Columns, json_line, local
from tidemill.model.queues.queue import Limit, QueueOptions
from tidemill.model.view import QueueInfo

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine


@click.group()
def queues() -> None:
    """The queues, their limits and whether they are paused."""


@queues.command()
@json_option
@where_options
def ls(where: Where, as_json: bool) -> None:
    """List every queue with its options."""

    async def work(engine: "Engine") -> list[QueueInfo]:
        return await engine.queues.list()

    found = with_engine(where, work)
    if as_json:
        for queue in found:
            json_line(queue_shape(queue))
    elif found:
        columns = Columns(
            Column("QUEUE"), Column("LIMIT"), Column("PER KEY"), Column("PAUSED"), Column("OTHER OPTIONS")
        )
        columns.print(map(_row, found))
    else:
        click.echo("there is no queue yet: the first job makes one", err=True)


def _row(queue: QueueInfo) -> tuple[object, ...]:
    options = queue.options
    return (
        queue.name,
        _limit(options.own),
        _limit(options.per_key),
        _paused(queue),
        _others(options),
    )


def _limit(limit: Limit | None) -> str:
    if not limit:
        return ""
    parts = []
    if limit.concurrency is not None:
        parts.append(f"{limit.concurrency} at once")
    if limit.rate is not None:
        parts.append(f"{limit.rate.count} in {limit.rate.per:g} s")
    return ", ".join(parts)


def _paused(queue: QueueInfo) -> str:
    if queue.paused_at is None:
        return ""
    by = f" by {queue.paused_by}" if queue.paused_by else ""
    why = f": {queue.paused_why}" if queue.paused_why else ""
    return f"since {local(queue.paused_at)}{by}{why}"


def _others(options: QueueOptions) -> str:
    named: dict[str, Any] = msgspec.to_builtins(options)
    shown = {name: value for name, value in named.items() if name not in ("concurrency", "rate", "per_key")}
    return ", ".join(f"{name}={_short(value)}" for name, value in shown.items())


def _short(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
