"""Dead-letter groups for people and for machines."""

from collections.abc import Sequence

import click

from tidemill.cli.output.shaping import group_shape
from tidemill.cli.output.text import Column, Columns, count, json_line, local
from tidemill.model.jobs.fingerprint import plain_message
from tidemill.model.view import DeadGroup

COLUMNS = (
    Column("JOBS", right=True),
    Column("QUEUE"),
    Column("GROUP"),
    Column("FIRST"),
    Column("LAST"),
    Column("ERROR"),
)


def print_groups(groups: Sequence[DeadGroup], limit: int | None, as_json: bool) -> None:
    """One line each, at most `limit` of them."""
    if as_json:
        for group in groups[:limit]:
            json_line(group_shape(group))
    elif not groups:
        click.echo("no dead letters", err=True)
    else:
        Columns(*COLUMNS).print(map(_row, groups[:limit]))
        if limit is not None and len(groups) > limit:
            click.echo(f"the first {limit:,} of {count(len(groups), 'group')}", err=True)


def _row(group: DeadGroup) -> tuple[object, ...]:
    error = group.error.rpartition(".")[2] or group.kind
    pattern = plain_message(group.message)
    return (
        f"{group.count:,}",
        group.queue,
        group.name,
        local(group.first_at),
        local(group.last_at),
        f"{error}: {pattern}" if pattern else error,
    )
