"""`tidemill enqueue`: a job by its task's name."""

from typing import Any

import click

from tidemill.cli import exits
from tidemill.cli.options.lengths import LengthType
from tidemill.cli.options.moments import MomentType
from tidemill.cli.options.payload import arguments
from tidemill.cli.options.picking import IdType, json_option
from tidemill.cli.options.where import Where, where_options
from tidemill.cli.output.shapes import EnqueuedShape
from tidemill.cli.output.text import json_line
from tidemill.model.ids import JobId, show_id
from tidemill.model.time import LONGEST, SECOND

_LENGTH = LengthType(0, LONGEST / SECOND)


@click.command()
@click.argument("task")
@click.argument("json", nargs=-1)
@click.option("-q", "--queue", metavar="NAME", help="Another queue than the task's own.")
@click.option("--delay", type=_LENGTH, help="Run it this much later: 30, 5m, 24h.")
@click.option("--at", type=MomentType(), help="Run it at this moment: 2030-01-31T18:00:00Z.")
@click.option("--priority", type=click.IntRange(0, 10), help="0 (first) to 10.")
@click.option("--key", help="For limits and fairness, if it does not come from an argument.")
@click.option("--id", "job_id", type=IdType(), help="A UUID of your own: a repeat makes no second job.")
@click.option("--unique", metavar="KEY", help="At most one live job of the task has this key.")
@click.option("--unique-until", type=click.Choice(["end", "start"]), help="Held until it ends, or starts.")
@click.option("--unique-for", type=_LENGTH, help="Held for this long instead, whatever becomes of the job.")
@click.option(
    "--on-conflict",
    type=click.Choice(["existing", "replace", "refuse"]),
    help="If a job has the key: print its id, replace it while it waits, or fail.",
)
@click.option("--debounce", type=_LENGTH, help="Run the last call, after this long without another one.")
@click.option("--debounce-max", type=_LENGTH, help="But no later than this after the first one.")
@click.option("--throttle", type=_LENGTH, help="Run the first call of this long.")
@click.option("--wait", is_flag=True, help="Wait for the end and print the result; exit code 1 if it failed.")
@click.option("--wait-for", type=_LENGTH, help="The same, but no longer than this; then exit code 1.")
@json_option
@where_options
def enqueue(
    where: Where,
    task: str,
    json: tuple[str, ...],
    job_id: JobId | None,
    wait: bool,
    wait_for: float | None,
    as_json: bool,
    **options: Any,
) -> int:
    """Enqueue a job of TASK and print its id.

    TASK is the task's full name: its module and function (shop.send_email), unless the task says another.
    JSON is an array (arguments by position), an object (by name), or one of each; `@FILE` reads it from a
    file, `-` from standard input. The task's queue, priority and parameters come from the application (-A)
    or from the catalogue that workers publish; without either, give --queue.

    \b
        tidemill enqueue -A shop:app shop.send_email '["a@b.c"]' '{"subject": "hi"}' --delay 5m
    """
    args, kwargs = arguments(json)
    said = {name: value for name, value in options.items() if value is not None}
    if job_id is not None:
        said["id"] = show_id(job_id)
    app = where.application()
    try:
        job = app.enqueue(task, args, kwargs, **said)
        if not (wait or wait_for is not None):
            _say(EnqueuedShape(job.id, task, bool(job.created)), as_json)
            return exits.DONE
        click.echo(job.id, err=True)
        result = job.result(timeout=wait_for)
        _say(EnqueuedShape(job.id, task, bool(job.created), result), as_json)
        return exits.DONE
    finally:
        app.close()


def _say(done: EnqueuedShape, as_json: bool) -> None:
    import msgspec

    if as_json:
        json_line(done)
    elif done.result is msgspec.UNSET:
        click.echo(done.id)
    else:
        click.echo(msgspec.json.encode(done.result).decode())
