"""`./dev chaos`: a cluster under faults, for some minutes, on each engine.

Shows each fault as it comes, and ends with a table. Exit code 1: some checker was red.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import click
import msgspec
from rich.console import Console

from tests import leash
from tests.chaos import faults, plants
from tests.chaos.plan import Step
from tests.chaos.plants.trial import seek
from tests.chaos.report import findings, table
from tests.chaos.runner import RATE, Verdict, run
from tests.chaos.seeds import REGRESSIONS
from tests.chaos.stores import STORES

PAPER_WIDTH = 130


@click.command()
@click.option("--minutes", default=1.0, show_default=True, help="Of faults, on each engine.")
@click.option("--seed", type=int, help="Play the plan of this seed again.  [a fresh one]")
@click.option("--engine", "engines", multiple=True, type=click.Choice(list(STORES)), help="[all]")
@click.option("--rate", default=RATE, show_default=True, help="Operations a second of each of two producers.")
@click.option("--plants", "with_plants", is_flag=True, help="Instead: every planted bug has to be found.")
@click.option("--plant", "only", help="Instead: this planted bug has to be found.")
@click.option(
    "--regressions", is_flag=True, help="Instead: the plans that are kept because something was once wrong."
)
@click.option("--keep", is_flag=True, help="Keep history and logs of a green run too.")
@click.option("--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Also write this.")
def main(
    minutes: float,
    seed: int | None,
    engines: tuple[str, ...],
    rate: float,
    with_plants: bool,
    only: str | None,
    regressions: bool,
    keep: bool,
    json_file: Path | None,
) -> None:
    """Real workers and servers, faults by seed, judged by checkers."""
    leash.hold()
    console = Console(width=None if sys.stdout.isatty() else PAPER_WIDTH)
    if with_plants or only:
        sys.exit(find_plants(console, engines, only))
    verdicts: list[Verdict] = []
    for one in wanted(engines or tuple(STORES), seed, minutes * 60, regressions):
        console.print(f"{one.engine}: {one.seconds / 60:.2g} minutes, {one.name}")
        missing = faults.not_testable(STORES[one.engine].able)
        if missing:
            console.print(f"NOT TESTED on this machine: {', '.join(missing)}", style="yellow")
        verdicts.append(
            asyncio.run(
                run(
                    one.engine,
                    seed=one.seed,
                    seconds=one.seconds,
                    plan=one.plan,
                    rate=rate,
                    keep=keep,
                    say=teller(console),
                )
            )
        )
    console.print(table(verdicts))
    for line in [line for one in verdicts for line in findings(one)]:
        console.print(line, highlight=False, soft_wrap=True)
    if json_file is not None:
        json_file.write_text(json.dumps(msgspec.to_builtins(verdicts), indent=1))
    sys.exit(1 if any(one.red for one in verdicts) else 0)


class Wanted(NamedTuple):
    """A run that is to be made."""

    engine: str
    name: str
    seed: int
    seconds: float
    plan: tuple[Step, ...] | None = None


def wanted(engines: tuple[str, ...], seed: int | None, seconds: float, regressions: bool) -> Iterator[Wanted]:
    """All of them."""
    if regressions:
        for name, kept in REGRESSIONS.items():
            if kept.engine in engines:
                yield Wanted(kept.engine, name, 1, kept.seconds, kept.steps)
        return
    for engine in engines:
        chosen = random.randrange(1 << 31) if seed is None else seed
        yield Wanted(engine, f"seed {chosen}", chosen, seconds)


def teller(console: Console) -> Callable[[str], None]:
    """Says each fault with its time."""
    began = time.monotonic()
    return lambda text: console.print(f"{time.monotonic() - began:7.1f} s  {text}", highlight=False)


def find_plants(console: Console, engines: tuple[str, ...], only: str | None) -> int:
    """How many planted bugs were not found by the checker that has to."""
    missed = 0
    for name, plant in plants.load().items():
        if (only and name != only) or (engines and plant.engine not in engines):
            continue
        verdict = asyncio.run(seek(name))
        found = plant.checker in verdict.red
        missed += not found
        others = ", ".join(red for red in verdict.red if red != plant.checker)
        light = (
            f"[green]found by {plant.checker}[/green]"
            if found
            else f"[red]not found by {plant.checker}[/red]"
        )
        console.print(f"{plant.engine}: {name}: {light}" + (f" (also red: {others})" if others else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    main()
