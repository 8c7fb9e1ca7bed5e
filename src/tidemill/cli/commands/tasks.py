"""`tidemill tasks`: the tasks that workers have published, and whether they are paused."""

from typing import TYPE_CHECKING

import click

from tidemill.cli.options.picking import json_option
from tidemill.cli.options.where import Where, operator, where_options, with_engine
from tidemill.cli.output.queue_text import paused_words
from tidemill.cli.output.shaping import task_shape
from tidemill.cli.output.text import Column, Columns, json_line, length
from tidemill.model.view import TaskEntry

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine


@click.group()
def tasks() -> None:
    """The tasks that workers have published, and whether they are paused."""


@tasks.command()
@json_option
@where_options
def ls(where: Where, as_json: bool) -> None:
    """List every task that some worker has published."""

    async def work(engine: "Engine") -> list[TaskEntry]:
        return await engine.tasks.list()

    found = with_engine(where, work)
    if as_json:
        for task in found:
            json_line(task_shape(task))
    elif found:
        columns = ("TASK", "QUEUE", "PRIORITY", "TIMEOUT", "PAUSED")
        Columns(*map(Column, columns)).print(
            (task.name, task.queue, task.priority, length(task.timeout), paused_words(task)) for task in found
        )
    else:
        click.echo("no worker has published a task: start one", err=True)


@tasks.command()
@click.argument("name")
@click.option("--why", default="", metavar="TEXT", help="The reason, for those who see it later.")
@where_options
def pause(where: Where, name: str, why: str) -> None:
    """Start none of a task's jobs, in whatever queue, until it is resumed. What runs goes on."""
    from tidemill.app.operating import task_actions

    with_engine(where, lambda engine: task_actions.pause(engine, name, by=operator(), why=why))
    click.echo(f"{name} is paused", err=True)


@tasks.command()
@click.argument("name")
@where_options
def resume(where: Where, name: str) -> None:
    """Start a task's jobs again, in their old order."""
    from tidemill.app.operating import task_actions

    with_engine(where, lambda engine: task_actions.resume(engine, name, by=operator()))
    click.echo(f"{name} goes on", err=True)
