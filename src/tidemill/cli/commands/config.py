"""`tidemill config`: which values are in force, and where they came from."""

import os

import click

from tidemill.cli.options.picking import json_option
from tidemill.cli.options.where import Where, where_options
from tidemill.cli.output.shapes import SettingShape
from tidemill.cli.output.text import Column, Columns, json_line
from tidemill.task.settings import Settings
from tidemill.task.settings.setting import PREFIX

OTHER_VARIABLES = {"TIDEMILL_REQUIRE_ALL"}
"""Known, but not settings."""


@click.group()
def config() -> None:
    """The settings."""


@config.command()
@json_option
@where_options
def show(where: Where, as_json: bool) -> None:
    """Show every setting in force and where its value came from. Secrets are hidden."""
    settings = where.settings
    rows = [SettingShape(name, settings.shown(name), settings.source_of(name)) for name in settings]
    if as_json:
        for row in rows:
            json_line(row)
        return
    Columns(Column("SETTING"), Column("VALUE"), Column("FROM")).print(
        (row.name, row.value, row.source) for row in rows
    )
    for name in _unknown():
        click.echo(f"tidemill: the environment has {name}, which is not a setting", err=True)


@config.command()
def example() -> None:
    """Print a .env with every setting at its default, to start from."""
    from tidemill.task.settings.documents import env_example

    click.echo(env_example(), nl=False)


def _unknown() -> list[str]:
    known = {name for entry in Settings.table().values() for name in (entry.variable, entry.file_variable)}
    return sorted(
        name for name in os.environ if name.startswith(PREFIX) and name not in known | OTHER_VARIABLES
    )
