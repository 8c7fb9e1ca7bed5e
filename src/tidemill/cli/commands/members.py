"""`tidemill members`: who is there."""

from typing import TYPE_CHECKING

import click

from tidemill.cli.options.picking import json_option
from tidemill.cli.options.where import Where, where_options, with_engine
from tidemill.cli.output.shaping import member_shape
from tidemill.cli.output.text import Column, Columns, json_line, length, local, size
from tidemill.model.member import (
    CONTROLLER,
    NO_CONTROLLER,
    MemberRecord,
    ProcessDetail,
    detail_of,
    without_controller,
)
from tidemill.model.time import Instant
from tidemill.model.view import CONTROLLER_LEASE

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine


@click.command()
@click.option("-v", "--verbose", is_flag=True, help="Show the processes of each, and what they run.")
@json_option
@where_options
def members(where: Where, as_json: bool, verbose: bool) -> None:
    """List the members: process groups that send heartbeats, healthy, late or gone.

    The one whose role is marked, controller*, is the controller now; the others that have the role stand
    ready.
    """

    async def work(engine: "Engine") -> tuple[list[MemberRecord], str, list[str], Instant]:
        holders = [lease.holder for lease in await engine.leases.list() if lease.name == CONTROLLER_LEASE]
        catalogue = [entry.name for entry in await engine.tasks.list()] if as_json else []
        return await engine.members.list(), "".join(holders), catalogue, await engine.now()

    found, elected, catalogue, now = with_engine(where, work)
    if as_json:
        for member in found:
            elected_now = member.info.id.hex() == elected
            json_line(member_shape(member, controller=elected_now, catalogue=catalogue))
    elif found:
        columns = Columns(
            Column("NAME"),
            Column("HEALTH", state=True),
            Column("RUNNING", right=True),
            Column("SLOTS", right=True),
            Column("SINCE"),
            Column("LAST HEARTBEAT"),
            Column("MEMORY", right=True),
            Column("ROLES"),
            Column("VERSION"),
            Column("QUEUES"),
        )
        columns.print(_row(member, elected, now) for member in found)
        if verbose:
            _show_processes(found)
    else:
        click.echo("nobody is there: start a worker with `tidemill worker APP`", err=True)
    if without_controller(found):
        click.secho(f"warning: {NO_CONTROLLER}", fg="yellow", err=True)


def _row(member: MemberRecord, elected: str, now: Instant) -> tuple[object, ...]:
    info, detail = member.info, detail_of(member.info)
    own = () if any(one.pid == info.pid for one in detail.processes) else (detail.memory,)
    memory = [known for known in (*own, *(one.memory for one in detail.processes)) if known is not None]
    return (
        info.name,
        member.health.value,
        member.running,
        info.slots,
        local(member.since),
        f"{length(max(0, now - member.heartbeat_at))} ago",
        size(sum(memory)) if memory else None,
        ",".join(_role(role, info.id.hex() == elected) for role in info.roles),
        info.version,
        ",".join(info.queues),
    )


def _role(role: str, elected: bool) -> str:
    return f"{role}*" if elected and role == CONTROLLER else role


def _show_processes(found: list[MemberRecord]) -> None:
    """One line for each process; what it runs comes last."""
    click.echo()
    numbers = (Column(head, right=True) for head in ("PID", "MEMORY", "RUNNING", "HELD", "LOOP SILENT"))
    Columns(Column("MEMBER"), *numbers, Column("JOBS")).print(
        _process(member.info.name, one) for member in found for one in detail_of(member.info).processes
    )


def _process(member: str, one: ProcessDetail) -> tuple[object, ...]:
    runs = ", ".join(run.id if run.for_s is None else f"{run.id} ({run.for_s:.3g} s)" for run in one.runs)
    more = f" and {one.held - len(one.runs)} more" if one.held > len(one.runs) else ""
    return member, one.pid, size(one.memory), one.started, one.held, f"{one.loop_silent_s:.3g} s", runs + more
