"""`tidemill doctor`: finds what is wrong, and says what to do.

So far: what makes the state grow, a cluster without a controller, and jobs that wait in vain.
"""

from typing import TYPE_CHECKING

import click

from tidemill.cli import exits
from tidemill.cli.options.picking import json_option
from tidemill.cli.options.where import Where, where_options, with_engine
from tidemill.cli.output.shaping import doctor_shape
from tidemill.cli.output.text import NOTHING, Column, Columns, json_line, length, size
from tidemill.model.member import CONTROLLER, NO_CONTROLLER, MemberRecord, without_controller
from tidemill.model.storage import Part, Storage, StorageHolder, StorageWarning, warnings_of

if TYPE_CHECKING:
    from tidemill.engine.protocol import Engine


@click.command()
@json_option
@where_options
def doctor(where: Where, as_json: bool) -> int:
    """Look for what is wrong, and say what to do: exit code 0 if all is well, 1 with warnings.

    Shows the size of each table or file, rows that are deleted and not yet removed, and who keeps them from
    being removed: a transaction that stays open, a prepared one, a replication slot, a reader. On Redis also:
    data that was lost, a server that evicts keys or keeps no append-only file. Warns too when members are
    there and none of them stands for controller, of queues with ready jobs that no live worker takes, and of
    waiting jobs whose task none of them knows.
    """
    from tidemill.app.reading.unserved import Unserved, unserved

    async def work(engine: "Engine") -> tuple[str, Storage, list[MemberRecord], list[Unserved]]:
        members = await engine.members.list()
        return engine.name, await engine.inspect.storage(), members, await unserved(engine)

    name, storage, members, waiting = with_engine(where, work)
    warnings = warnings_of(storage)
    if without_controller(members):
        warnings.append(StorageWarning(kind=CONTROLLER, subject="", text=NO_CONTROLLER))
    warnings += [StorageWarning(kind=each.kind, subject=each.subject, text=each.text) for each in waiting]
    if as_json:
        json_line(doctor_shape(name, storage, warnings))
    else:
        _show(storage)
        for warning in warnings:
            click.secho(f"warning: {warning.text}", fg="yellow", err=True)
        click.echo(f"{name}: {size(storage.bytes)}, {_verdict(len(warnings))}", err=True)
    return exits.PARTLY if warnings else exits.DONE


def _show(storage: Storage) -> None:
    numbers = (Column(head, right=True) for head in ("SIZE", "ROWS", "DEAD ROWS", "FREE"))
    Columns(Column("PART"), *numbers).print(map(_part, storage.parts))
    if storage.holders:
        click.echo()
        heads = ("HELD BACK BY", "NAME", "FOR", "TRANSACTIONS", "KEEPS", "STATE", "APPLICATION", "USER")
        Columns(*map(Column, heads)).print(map(_holder, storage.holders))


def _part(part: Part) -> tuple[object, ...]:
    return part.name, size(part.bytes), _count(part.rows), _count(part.dead), size(part.free)


def _holder(holder: StorageHolder) -> tuple[object, ...]:
    return (
        holder.kind.value,
        holder.name or NOTHING,
        NOTHING if holder.age is None else length(holder.age),
        _count(holder.behind),
        size(holder.bytes),
        holder.state or NOTHING,
        holder.application or NOTHING,
        holder.user or NOTHING,
    )


def _count(number: int | None) -> str:
    return NOTHING if number is None else f"{number:,}"


def _verdict(warnings: int) -> str:
    return "all is well" if not warnings else "1 warning" if warnings == 1 else f"{warnings} warnings"
