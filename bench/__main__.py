"""`python -m bench`: see the package's docstring."""

import asyncio
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import click
import msgspec
from rich.console import Console

from bench import engine as engines
from bench import peers_report, product, side_by_side
from bench.plan import Plan
from bench.products import PRODUCTS
from bench.progress import Steps
from bench.report import Figure, document, figures_table, table
from bench.rounds import Comparison
from bench.stores import STORES

PAPER_WIDTH = 160
"""Of the table where no terminal says how wide it is."""
DOCS = Path(__file__).parents[1] / "docs"
QUICK_SAMPLES = 20
QUICK_JOBS, QUICK_ROUNDS, QUICK_SCALE, QUICK_HELD_S = 1_000, 3, 0.01, 2.0


@click.command()
@click.argument("names", nargs=-1)
@click.option(
    "--peers",
    is_flag=True,
    help="Side by side with other queues: those of these NAMES, the usual ones, or `all`.",
)
@click.option(
    "--docs",
    is_flag=True,
    help="With --peers: write docs/peers.md, .json and .svg; what this run does not measure stays there.",
)
@click.option(
    "--note", default="", help="With --peers: said beside the figures, such as what else the machine did."
)
@click.option("--engine-only", is_flag=True, help="Measure the engine's facets, without a worker.")
@click.option(
    "--engine", default="sqlite", type=click.Choice(list(STORES)), show_default=True, help="In a fresh place."
)
@click.option("--durability", default="full", type=click.Choice(["full", "normal", "off"]), show_default=True)
@click.option(
    "--held",
    type=click.FloatRange(min=0),
    help="PostgreSQL: seconds for which a transaction is held open  [20]",
)
@click.option("--jobs", type=click.IntRange(min=100), help="Jobs of one timed turn at batch 100  [20000]")
@click.option("--rounds", type=click.IntRange(min=1), help="Turns of each subject  [5]")
@click.option("--scale", type=click.FloatRange(min=0.0001, max=1), help="Shrinks lanes and crowds  [1]")
@click.option("--quick", is_flag=True, help="Smaller everything: an impression in half a minute.")
@click.option(
    "--only",
    multiple=True,
    metavar="MEASURE",
    help="This measure; may be repeated: "
    + "; ".join(f"{store}: {', '.join(measures)}" for store, measures in PRODUCTS.items())
    + f"; with --engine-only: {', '.join(engines.MEASURES)}.",
)
@click.option(
    "--json", "json_file", type=click.Path(path_type=Path, dir_okay=False), help="Also write this file."
)
def main(
    names: tuple[str, ...],
    peers: bool,
    docs: bool,
    note: str,
    engine_only: bool,
    engine: str,
    durability: str,
    held: float | None,
    jobs: int | None,
    rounds: int | None,
    scale: float | None,
    quick: bool,
    only: tuple[str, ...],
    json_file: Path | None,
) -> None:
    """Measure Tidemill against a frozen minimal loop on the same store, and beside other queues."""
    if peers:
        beside_peers(names, jobs, rounds, quick, docs, note, json_file)
        return
    if names or docs or note:
        raise click.UsageError("NAMES, --docs and --note belong to --peers")
    known = list(engines.MEASURES if engine_only else PRODUCTS[engine])
    if wrong := [name for name in only if name not in known]:
        raise click.UsageError(f"no measure {', '.join(wrong)} here; there are {', '.join(known)}")
    with (
        TemporaryDirectory(prefix="tidemill-bench-") as folder,
        closing(STORES[engine](Path(folder), durability)) as store,
        Steps(Console(stderr=True)) as steps,
    ):
        plan = Plan(
            folder=Path(folder),
            store=store,
            durability=durability,
            jobs=jobs or (QUICK_JOBS if quick else Plan.jobs),
            rounds=rounds or (QUICK_ROUNDS if quick else Plan.rounds),
            scale=scale or (QUICK_SCALE if quick else Plan.scale),
            held_s=held if held is not None else (QUICK_HELD_S if quick else Plan.held_s),
        )
        found: list[Comparison | Figure] = []
        with asyncio.Runner() as runner:
            if engine_only:
                found += runner.run(engines.run(plan, only, steps))
            else:
                found += runner.run(product.run(plan, PRODUCTS[engine], only, steps))
    comparisons = [one for one in found if isinstance(one, Comparison)]
    figures = [one for one in found if isinstance(one, Figure)]
    console = Console(width=None if sys.stdout.isatty() else PAPER_WIDTH)
    if comparisons:
        console.print(table(comparisons, plan))
    if figures:
        console.print(figures_table(figures))
    if json_file is not None:
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(document(comparisons, plan, figures))))


def beside_peers(
    names: tuple[str, ...],
    jobs: int | None,
    rounds: int | None,
    quick: bool,
    docs: bool,
    note: str,
    json_file: Path | None,
) -> None:
    """Take turns with other queues."""
    try:
        peers = side_by_side.chosen(names)
    except ValueError as wrong:
        raise click.UsageError(str(wrong)) from None
    sizes = side_by_side.Sizes(
        jobs=jobs or (QUICK_JOBS if quick else side_by_side.Sizes.jobs),
        rounds=rounds or (1 if quick else side_by_side.Sizes.rounds),
        samples=QUICK_SAMPLES if quick else side_by_side.Sizes.samples,
    )
    outcome = side_by_side.begin(sizes, note)
    try:
        with Steps(Console(stderr=True)) as steps, asyncio.Runner() as runner:
            runner.run(side_by_side.run(peers, sizes, steps, outcome))
    finally:  # an interrupted run says what it has measured
        print(peers_report.markdown(outcome))
    if json_file is not None:
        json_file.write_bytes(peers_report.encoded(outcome))
    if docs:
        peers_report.write(outcome, DOCS)
    if any(result.error is not None for result in outcome.results):
        sys.exit(1)


if __name__ == "__main__":
    main()
