"""`penstock doctor`: finds what is wrong, and says what to do. So far: what makes the state grow."""

from typing import TYPE_CHECKING

import click

from penstock.cli import exits
from penstock.cli.picking import json_option
from penstock.cli.shaping import doctor_shape
from penstock.cli.text import NOTHING, Column, Columns, json_line, length
from penstock.cli.where import Where, where_options, with_engine
from penstock.model.storage import Holder, Part, Storage, warnings_of

if TYPE_CHECKING:
    from penstock.engine.protocol import Engine

KIB = 1 << 10


@click.command()
@json_option
@where_options
def doctor(where: Where, as_json: bool) -> int:
    """Look for what is wrong, and say what to do: exit code 0 if all is well, 1 with warnings.

    Shows the size of each table or file, rows that are deleted and not yet removed, and who keeps them from
    being removed: a transaction that stays open, a prepared one, a replication slot, a reader.
    """

    async def work(engine: "Engine") -> tuple[str, Storage]:
        return engine.name, await engine.inspect.storage()

    name, storage = with_engine(where, work)
    warnings = warnings_of(storage)
    if as_json:
        json_line(doctor_shape(name, storage, warnings))
    else:
        _show(storage)
        for warning in warnings:
            click.secho(f"warning: {warning.text}", fg="yellow", err=True)
        click.echo(f"{name}: {_size(storage.bytes)}, {_verdict(len(warnings))}", err=True)
    return exits.PARTLY if warnings else exits.DONE


def _show(storage: Storage) -> None:
    numbers = (Column(head, right=True) for head in ("SIZE", "ROWS", "DEAD", "FREE"))
    Columns(Column("PART"), *numbers).print(map(_part, storage.parts))
    if storage.holders:
        click.echo()
        heads = ("HELD BACK BY", "NAME", "FOR", "TRANSACTIONS", "KEEPS", "STATE", "APPLICATION", "USER")
        Columns(*map(Column, heads)).print(map(_holder, storage.holders))


def _part(part: Part) -> tuple[object, ...]:
    return part.name, _size(part.bytes), _count(part.rows), _count(part.dead), _size(part.free)


def _holder(holder: Holder) -> tuple[object, ...]:
    return (
        holder.kind.value,
        holder.name or NOTHING,
        NOTHING if holder.age is None else length(holder.age),
        _count(holder.behind),
        _size(holder.bytes),
        holder.state or NOTHING,
        holder.application or NOTHING,
        holder.user or NOTHING,
    )


def _count(number: int | None) -> str:
    return NOTHING if number is None else f"{number:,}"


def _size(number: int | None) -> str:
    """In the largest unit that leaves a number of one or more."""
    if number is None:
        return NOTHING
    size, units = float(number), ["B", "KiB", "MiB", "GiB"]
    while size >= KIB and len(units) > 1:
        size, units = size / KIB, units[1:]
    return f"{size:,.1f} {units[0]}" if units[0] != "B" else f"{number} B"


def _verdict(warnings: int) -> str:
    return "all is well" if not warnings else "1 warning" if warnings == 1 else f"{warnings} warnings"
