"""`tidemill migrate`: make or renew the schema."""

from typing import TYPE_CHECKING

import click

from tidemill.cli.options.where import Where, where_options, with_engine

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine


@click.command()
@where_options
def migrate(where: Where) -> None:
    """Make the schema, or bring an older one up to date.

    Workers and producers do it by themselves; this is for deployments that do it beforehand."""

    async def work(engine: "Engine") -> str:
        return engine.name

    click.echo(f"{with_engine(where, work, create=True)} is up to date")
