"""`tidemill queues`: the queues, how they are configured, and what operators change about it."""

from typing import TYPE_CHECKING, Any

import click

from tidemill.cli.options.picking import json_option
from tidemill.cli.options.settings_of_queues import SettingType
from tidemill.cli.options.where import Where, operator, where_options, with_engine
from tidemill.cli.output.queue_text import (
    COLUMNS,
    in_force_words,
    queue_row,
    show_problems,
    show_queue,
)
from tidemill.cli.output.shaping import queue_shape
from tidemill.cli.output.text import Column, Columns, json_line
from tidemill.model.errors import BadInput
from tidemill.model.view import QueueInfo

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine

why_option = click.option("--why", default="", metavar="TEXT", help="The reason, for those who see it later.")
version_option = click.option(
    "--if-version",
    "version",
    type=click.IntRange(0),
    metavar="N",
    help="Only if the queue's options still have this version (`queues show --json`).",
)


@click.group()
def queues() -> None:
    """The queues, their limits and whether they are paused."""


@queues.command()
@json_option
@where_options
def ls(where: Where, as_json: bool) -> None:
    """List every queue with its options, and which of them operators have set."""

    async def work(engine: "Engine") -> list[QueueInfo]:
        return await engine.queues.list()

    found = with_engine(where, work)
    if as_json:
        for queue in found:
            json_line(queue_shape(queue))
    elif found:
        Columns(*map(Column, COLUMNS)).print(map(queue_row, found))
        for queue in found:
            show_problems(queue)
    else:
        click.echo("there is no queue yet: the first job makes one", err=True)


@queues.command()
@click.argument("name")
@json_option
@where_options
def show(where: Where, name: str, as_json: bool) -> None:
    """Show one queue: what is declared beside what operators have set, with who, why and when."""
    from tidemill.app.operating import queue_actions

    found = with_engine(where, lambda engine: queue_actions.find(engine, name))
    if as_json:
        json_line(queue_shape(found))
    else:
        show_queue(found)


@queues.command(name="set")
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, type=SettingType(), metavar="OPTION=VALUE...")
@why_option
@version_option
@json_option
@where_options
def set_(
    where: Where,
    name: str,
    settings: tuple[tuple[str, Any], ...],
    why: str,
    version: int | None,
    as_json: bool,
) -> None:
    """Set options of a queue over what code declares, until they are reset.

    It survives deploys. In force for the next claim anywhere, and in running workers within a second. `none`
    says "no limit".

    \b
    concurrency=5                     running at once, in the whole cluster
    rate=100/m                        starts, in any window of that length
    per_key=2  per_key=2,100/m        the same for each key
    limits=acme:50,other:none         single keys' own limits, in the place of per_key
    per_task=shop.mail:5              the same for single tasks
    per_worker=4                      for each worker process
    fair_by=key  weights=gold:10      keys take turns
    keep=7d  keep=1000  keep=7d,1000  what is kept; also keep_completed, keep_cancelled, keep_dead
    keep_body=no                      drop payload and result on completion
    """
    from tidemill.app.operating import queue_actions

    if len(dict(settings)) < len(settings):
        raise BadInput("queues set: each option once")
    fields = queue_actions.read_settings(dict(settings), where="queues set")

    async def work(engine: "Engine") -> QueueInfo:
        await queue_actions.override(engine, name, fields, by=operator(), why=why, version=version)
        return await queue_actions.find(engine, name)

    found = with_engine(where, work)
    if as_json:
        json_line(queue_shape(found))
    else:
        click.echo(f"{found.name}: {in_force_words(found, list(fields))}", err=True)
    show_problems(found)


@queues.command()
@click.argument("name")
@click.argument("options", nargs=-1, metavar="[OPTION]...")
@version_option
@json_option
@where_options
def reset(where: Where, name: str, options: tuple[str, ...], version: int | None, as_json: bool) -> None:
    """Remove what operators have set of a queue: these options, or all. What code declares counts again."""
    from tidemill.app.operating import queue_actions

    async def work(engine: "Engine") -> tuple[QueueInfo, QueueInfo]:
        before = await queue_actions.find(engine, name)
        await queue_actions.reset(engine, name, options, by=operator(), version=version, where="queues reset")
        return before, await queue_actions.find(engine, name)

    before, found = with_engine(where, work)
    gone = sorted(set(before.overrides) - set(found.overrides))
    if as_json:
        json_line(queue_shape(found))
    elif gone:
        click.echo(f"{found.name} as declared: {in_force_words(found, gone)}", err=True)
    else:
        click.echo(f"{found.name}: nothing of that was set", err=True)


@queues.command()
@click.argument("name")
@click.argument("declared_by", metavar="APP")
@where_options
def retire(where: Where, name: str, declared_by: str) -> None:
    """Forget what an app that is gone for good declares of a queue; `queues show` names the apps.

    A worker of that app declares it again when it starts. While one is running, there is no need to: what its
    code no longer declares goes away by itself."""
    from tidemill.app.operating import queue_actions

    async def work(engine: "Engine") -> QueueInfo:
        await queue_actions.retire(engine, name, declared_by, by=operator())
        return await queue_actions.find(engine, name)

    found = with_engine(where, work)
    apps = sorted(found.declared)
    click.echo(f"{name}: declared by {', '.join(apps) or 'no app'} now", err=True)


@queues.command()
@click.argument("name")
@why_option
@where_options
def pause(where: Where, name: str, why: str) -> None:
    """Start none of a queue's jobs, until it is resumed. What runs goes on."""
    from tidemill.app.operating import queue_actions

    with_engine(where, lambda engine: queue_actions.pause(engine, name, by=operator(), why=why))
    click.echo(f"{name} is paused", err=True)


@queues.command()
@click.argument("name")
@where_options
def resume(where: Where, name: str) -> None:
    """Start a queue's jobs again."""
    from tidemill.app.operating import queue_actions

    with_engine(where, lambda engine: queue_actions.resume(engine, name, by=operator()))
    click.echo(f"{name} goes on", err=True)
