"""`python -m bench`: see the package's docstring."""

import asyncio
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import msgspec
from rich.console import Console

from bench.engine import MEASURES, SERVERS, run
from bench.plan import Plan
from bench.progress import Steps
from bench.report import document, table

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
    "--only", multiple=True, type=click.Choice(list(MEASURES)), help="This measure; may be repeated."
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
    """Measure Penstock against a frozen minimal loop on the same store."""
    if not engine_only:
        click.echo("The benchmark of the whole product comes with the worker; use --engine-only.", err=True)
        sys.exit(2)
    with TemporaryDirectory(prefix="penstock-bench-") as folder, Steps(Console(stderr=True)) as steps:
        plan = Plan(
            folder=Path(folder),
            durability=durability,
            jobs=jobs or (QUICK_JOBS if quick else Plan.jobs),
            rounds=rounds or (QUICK_ROUNDS if quick else Plan.rounds),
            scale=scale or (QUICK_SCALE if quick else Plan.scale),
        )
        with asyncio.Runner() as runner:
            comparisons = runner.run(run(plan, only, steps, url))
    Console(width=None if sys.stdout.isatty() else PAPER_WIDTH).print(table(comparisons, plan))
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(document(comparisons, plan))))


if __name__ == "__main__":
    main()
