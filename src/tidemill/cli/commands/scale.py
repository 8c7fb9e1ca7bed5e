"""`tidemill scale`: how many workers the queues want."""

from typing import TYPE_CHECKING

import click

from tidemill.cli.options.picking import json_option
from tidemill.cli.options.where import Where, where_options, with_engine
from tidemill.cli.output.shaping import scale_shape
from tidemill.cli.output.text import Column, Columns, json_line
from tidemill.model.scaling.demand import Demand, QueueDemand

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine


@click.command()
@click.argument("queue", required=False)
@click.option(
    "--slots-per-worker",
    type=click.IntRange(1),
    metavar="N",
    help="Count with so many slots a worker where no worker is live. [slots x processes of the settings]",
)
@json_option
@where_options
def scale(where: Where, queue: str | None, slots_per_worker: int | None, as_json: bool) -> None:
    """Say how many workers the queues want, or QUEUE alone: for KEDA's metrics-api scaler, or a script.

    WANTED counts `tidemill worker`s: enough that what runs goes on, and that what waits begins within the
    setting scale_wait. Jobs that no free slot would start do not count: those of a paused queue, or above its
    limit. Jobs of a paused task, of a task that no worker knows, or above a limit of their key or task count
    all the same. With --json it is one document, and the number is `workers`.
    """
    from tidemill.app.reading.demand import read_demand

    settings = where.settings
    each = slots_per_worker or settings.slots * settings.processes.least

    async def work(engine: "Engine") -> Demand:
        return await read_demand(engine, queue=queue, slots_per_worker=each, wait_s=settings.scale_wait)

    found = with_engine(where, work)
    if as_json:
        json_line(scale_shape(found))
        return
    heads = ("READY", "CAN START", "RUNNING", "SLOTS WANTED", "WORKERS NOW", "WORKERS WANTED")
    Columns(Column("QUEUE"), *(Column(head, right=True) for head in heads)).print(
        [*map(_row, found.queues), *([] if queue else [_total(found)])]
    )


def _row(one: QueueDemand) -> tuple[object, ...]:
    name = f"{one.queue} (paused)" if one.paused else one.queue
    return name, one.ready, one.startable, one.running, one.slots, one.live_workers, one.workers


def _total(found: Demand) -> tuple[object, ...]:
    ready, can_start, running = (
        sum(getattr(one, name) for one in found.queues) for name in ("ready", "startable", "running")
    )
    return "(all)", ready, can_start, running, found.slots, found.live_workers, found.workers
