"""`tidemill events`: what happens to jobs, line by line, until Ctrl-C."""

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from tidemill.cli.options.picking import IdType, json_option
from tidemill.cli.options.where import Where, where_options, with_engine
from tidemill.cli.output.shaping import event_shape
from tidemill.cli.output.text import NOTHING, STATE_COLOURS, one_line
from tidemill.model.event import Event, EventFilter, Gap
from tidemill.model.ids import JobId
from tidemill.model.jobs.job import JobState
from tidemill.model.names import check_queue, check_task

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine


@click.command()
@click.option("-q", "--queue", metavar="NAME", help="Only of this queue.")
@click.option("--task", metavar="NAME", help="Only of this task.")
@click.option(
    "-s",
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in JobState]),
    help="Only of jobs that came into this state; may be repeated.",
)
@click.option("--job", type=IdType(), help="Only of this job.")
@json_option
@where_options
def events(
    where: Where,
    queue: str | None,
    task: str | None,
    states: tuple[str, ...],
    job: JobId | None,
    as_json: bool,
) -> None:
    """Show what happens to jobs, as it happens, until Ctrl-C.

    Events are emitted only while somebody listens; every process begins within a good second. Where some
    are missing, a line says so.
    """
    only = frozenset(map(JobState, states)) or None
    wanted = EventFilter(
        queue=None if queue is None else check_queue(queue),
        task=None if task is None else check_task(task),
        states=only,
        job=job,
    )
    try:
        with_engine(where, lambda engine: _follow(engine, wanted, as_json))
    except KeyboardInterrupt:  # the usual way to end it
        return


async def _follow(engine: "Engine", wanted: EventFilter, as_json: bool) -> None:
    from tidemill.app.reading.events import EventListener
    from tidemill.engine.events.receiver import SEEN_AFTER_S

    listener = await EventListener.start(engine, wanted)
    try:
        hint = "listening; Ctrl-C ends"
        asyncio.get_running_loop().call_later(SEEN_AFTER_S, lambda: click.echo(hint, err=True))
        while found := await listener.backlog.atake():
            # in a thread: a slow reader must not stop us from receiving and announcing
            await asyncio.to_thread(_print, found, as_json)
    finally:
        await listener.aclose()


def _print(found: Sequence[Event | Gap], as_json: bool) -> None:
    if as_json:
        text = b"\n".join(msgspec.json.encode(event_shape(one)) for one in found).decode()
    else:
        colours = sys.stdout.isatty()
        text = "\n".join(_line(one, colours) for one in found)
    click.echo(text)


def _line(one: Event | Gap, colours: bool) -> str:
    if isinstance(one, Gap):
        missed = "some" if one.missed is None else f"{one.missed:,}"
        return f"--- {missed} events are missing here ({one.why}) ---"
    state = f"{one.state.value:9}"
    if colours and (colour := STATE_COLOURS.get(one.state.value)):
        state = click.style(state, colour)
    at = one.at.astimezone().isoformat(" ", "milliseconds")[:23]
    rest = one_line(one.error or one.member or NOTHING)
    return f"{at}  {state}  {one.job}  {one.queue}  {one_line(one.task)}  {rest}"
