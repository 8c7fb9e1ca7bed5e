"""`python -m bench`: see the package's docstring."""

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import msgspec
from rich.console import Console

from bench import product
from bench.engine import MEASURES, SERVERS, run
from bench.plan import Plan
from bench.progress import Steps
from bench.report import Figure, document, figures_table, table
from bench.rounds import Comparison

PAPER_WIDTH = 140
"""Of the table where no terminal says how wide it is."""
QUICK_JOBS, QUICK_ROUNDS, QUICK_SCALE = 1_000, 3, 0.01


@click.command()
@click.option("--engine-only", is_flag=True, help="Measure the engine's facets, without a worker.")
@click.option(
    "--url", default="sqlite", type=click.Choice(["sqlite", *SERVERS]), help="The engine; in a fresh place."
)
@click.option("--durability", default="full", type=click.Choice(["full", "normal", "off"]), show_default=True)
@click.option("--jobs", type=click.IntRange(min=100), help="Jobs of one timed turn at batch 100  [20000]")
@click.option("--rounds", type=click.IntRange(min=1), help="Turns of each subject  [5]")
@click.option("--scale", type=click.FloatRange(min=0.0001, max=1), help="Shrinks lanes and crowds  [1]")
@click.option("--quick", is_flag=True, help="Smaller everything: an impression in half a minute.")
@click.option(
    "--only",
    multiple=True,
    metavar="MEASURE",
    help=f"This measure; may be repeated: {', '.join(product.NAMES)}; of the engine: {', '.join(MEASURES)}.",
)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Also write this file."
)
def main(
    engine_only: bool,
    url: str,
    durability: str,
    jobs: int | None,
    rounds: int | None,
    scale: float | None,
    quick: bool,
    only: tuple[str, ...],
    json_file: Path | None,
) -> None:
    """Measure Penstock against a frozen minimal loop on the same store, and beside another queue."""
    known = list(MEASURES) if engine_only else list(product.NAMES)
    if wrong := [name for name in only if name not in known]:
        raise click.UsageError(f"no measure {', '.join(wrong)} here; there are {', '.join(known)}")
    with TemporaryDirectory(prefix="penstock-bench-") as folder, Steps(Console(stderr=True)) as steps:
        plan = Plan(
            folder=Path(folder),
            durability=durability,
            jobs=jobs or (QUICK_JOBS if quick else Plan.jobs),
            rounds=rounds or (QUICK_ROUNDS if quick else Plan.rounds),
            scale=scale or (QUICK_SCALE if quick else Plan.scale),
        )
        found: list[Comparison | Figure] = []
        with asyncio.Runner() as runner:
            if engine_only:
                found += runner.run(run(plan, only, steps, url))
            else:
                found += runner.run(product.run(plan, only, steps))
    comparisons = [one for one in found if isinstance(one, Comparison)]
    figures = [one for one in found if isinstance(one, Figure)]
    console = Console(width=None if sys.stdout.isatty() else PAPER_WIDTH)
    if comparisons:
        console.print(table(comparisons, plan))
    if figures:
        console.print(figures_table(figures))
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(document(comparisons, plan, figures))))


if __name__ == "__main__":
    main()
