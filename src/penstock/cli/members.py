"""`penstock members`: who is there."""

from typing import TYPE_CHECKING

import click

from penstock.cli.picking import json_option
from penstock.cli.shaping import member_shape
from penstock.cli.text import Column, Columns, json_line, length, local
from penstock.cli.where import Where, where_options, with_engine
from penstock.model.member import Member
from penstock.model.time import Instant

if TYPE_CHECKING:
    from penstock.engine.protocol import Engine


@click.command()
@json_option
@where_options
def members(where: Where, as_json: bool) -> None:
    """List the processes that beat: healthy, late or gone, and what they run."""

    async def work(engine: "Engine") -> tuple[list[Member], Instant]:
        return await engine.members.list(), await engine.now()

    found, now = with_engine(where, work)
    if as_json:
        for member in found:
            json_line(member_shape(member))
    elif found:
        Columns(
            Column("NAME"),
            Column("HEALTH", state=True),
            Column("RUNNING", right=True),
            Column("SLOTS", right=True),
            Column("SINCE"),
            Column("LAST BEAT"),
            Column("ROLES"),
            Column("VERSION"),
            Column("QUEUES"),
        ).print(_row(member, now) for member in found)
    else:
        click.echo("nobody is there: start a worker with `penstock worker APP`", err=True)


def _row(member: Member, now: Instant) -> tuple[object, ...]:
    info = member.info
    return (
        info.name,
        member.health.value,
        member.running,
        info.slots,
        local(member.since),
        f"{length(max(0, now - member.beat_at))} ago",
        ",".join(info.roles),
        info.version,
        ",".join(info.queues),
    )
