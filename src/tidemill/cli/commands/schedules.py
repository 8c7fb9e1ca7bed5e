"""`tidemill schedules`: what fires when, and what can be done about it."""

from typing import TYPE_CHECKING

import click

from tidemill.cli.options.picking import json_option
from tidemill.cli.options.where import Where, operator, where_options, with_engine
from tidemill.cli.output.shapes import ScheduledShape
from tidemill.cli.output.shaping import schedule_shape
from tidemill.cli.output.text import Column, Columns, json_line, length, local
from tidemill.model.ids import show_id
from tidemill.model.schedules.schedule import Cron, Schedule
from tidemill.model.schedules.spoken import state_of, words_of
from tidemill.model.time import Instant

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine


@click.group()
def schedules() -> None:
    """The schedules: when they fire next, and whether they do."""


@schedules.command()
@json_option
@where_options
def ls(where: Where, as_json: bool) -> None:
    """List every schedule, in words."""

    async def work(engine: "Engine") -> tuple[list[Schedule], Instant]:
        return await engine.schedules.list(), await engine.now()

    found, now = with_engine(where, work)
    if as_json:
        for schedule in found:
            json_line(schedule_shape(schedule, now))
    elif found:
        Columns(
            Column("NAME"),
            Column("WHEN"),
            Column("NEXT"),
            Column("STATE", state=True),
            Column("LAST"),
            Column("MISSED"),
            Column("OVERLAP"),
            Column("TASK"),
            Column("DECLARED BY"),
        ).print(_row(schedule, now) for schedule in found)
    else:
        click.echo(
            "there is no schedule: declare one with @app.cron or @app.every, and start a worker", err=True
        )


def _row(schedule: Schedule, now: Instant) -> tuple[object, ...]:
    by_calendar = isinstance(schedule.timing, Cron)  # for the others these mean nothing
    return (
        schedule.name,
        words_of(schedule.timing),
        _next(schedule, now),
        state_of(schedule, now),
        local(schedule.last_at),
        schedule.missed if by_calendar else "",
        schedule.overlap if by_calendar else "",
        schedule.job.task,
        schedule.source,
    )


def _next(schedule: Schedule, now: Instant) -> str:
    if not schedule.fires or schedule.next_at is None:
        return ""
    return f"in {length(schedule.next_at - now)}" if schedule.next_at > now else "now"


@schedules.command()
@click.argument("name")
@json_option
@where_options
def run(where: Where, name: str, as_json: bool) -> None:
    """Run a schedule now, paused or not. Its ticks stay as they are."""
    from tidemill.app.operating import schedule_actions

    job = with_engine(where, lambda engine: schedule_actions.run_now(engine, name, by=operator()))
    if as_json:
        json_line(ScheduledShape(name=name, job=show_id(job)))
    else:
        click.echo(show_id(job))


@schedules.command()
@click.argument("name")
@where_options
def pause(where: Where, name: str) -> None:
    """Fire a schedule no more, until it is resumed. What runs goes on."""
    from tidemill.app.operating import schedule_actions

    with_engine(where, lambda engine: schedule_actions.pause(engine, name, by=operator()))
    click.echo(f"{name} is paused", err=True)


@schedules.command()
@click.argument("name")
@where_options
def resume(where: Where, name: str) -> None:
    """Fire a schedule again. What would have been due in the pause is left out."""
    from tidemill.app.operating import schedule_actions

    with_engine(where, lambda engine: schedule_actions.resume(engine, name, by=operator()))
    click.echo(f"{name} fires again", err=True)


@schedules.command()
@click.argument("name")
@where_options
def rm(where: Where, name: str) -> None:
    """Remove a schedule; its jobs stay. One that code declares comes back with the next worker."""
    from tidemill.app.operating import schedule_actions

    with_engine(where, lambda engine: schedule_actions.remove(engine, name, by=operator()))
    click.echo(f"{name} is removed", err=True)
