"""`penstock config`: which values are in force, and where they came from."""

import os

import click

from penstock.cli.picking import json_option
from penstock.cli.shapes import SettingShape
from penstock.cli.text import Column, Columns, json_line
from penstock.cli.where import Where, where_options
from penstock.task.settings import Settings
from penstock.task.settings.setting import PREFIX

OTHER_VARIABLES = {"PENSTOCK_REQUIRE_ALL"}
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
        click.echo(f"penstock: the environment has {name}, which is not a setting", err=True)


@config.command()
def example() -> None:
    """Print a .env with every setting at its default, to start from."""
    from penstock.task.settings.documents import env_example

    click.echo(env_example(), nl=False)


def _unknown() -> list[str]:
    known = {name for entry in Settings.table().values() for name in (entry.variable, entry.file_variable)}
    return sorted(
        name for name in os.environ if name.startswith(PREFIX) and name not in known | OTHER_VARIABLES
    )
