"""`tidemill bench`: what Tidemill does on this machine with this engine.

The figures of one run belong together; the same machine may give twice as much an hour later. What they mean
beside a raw loop on the same store, and beside other queues, is measured by `bench/` in the repository.
"""

import click

from tidemill.cli.program import debug_option


@click.command()
@click.option("--url", metavar="URL", help="The engine. Default: a SQLite file in a temporary folder.")
@click.option(
    "--jobs", type=click.IntRange(100, 1_000_000), default=20_000, show_default=True, help="Jobs of a turn."
)
@click.option(
    "--processes", type=click.IntRange(1, 64), default=1, show_default=True, help="Worker processes."
)
@click.option(
    "--turns", type=click.IntRange(1, 100), default=3, show_default=True, help="Turns of each measure."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@debug_option
def bench(url: str | None, jobs: int, processes: int, turns: int, as_json: bool) -> None:
    """Measure Tidemill here: enqueue, throughput, processor time, pick-up latency, due times, memory.

    With --url the engine there is used, in queues of its own (tidemill-bench-*) whose jobs are cleared
    afterwards. Nothing else should be going on.
    """
    from tidemill.cli.bench.run import Plan, run

    run(Plan(jobs=jobs, processes=processes, turns=turns), url, as_json)
