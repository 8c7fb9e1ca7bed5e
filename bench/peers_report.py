"""What side by side came to: a table in Markdown, the same as JSON, and a chart."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from bench.chart import Bar, Group, svg
from bench.peers.contender import Turn
from bench.side_by_side import Outcome, Result

PICTURE = "![Throughput beside other queues](peers.svg)"
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"
ENGINE_TITLES = {"sqlite": "SQLite", "postgres": "PostgreSQL", "redis": "Redis", "rabbitmq": "RabbitMQ"}
HEADS = (
    "queue", "jobs/s", "Penstock beside it", "ratio", "enqueue/s, one by one", "in bulk", "CPU us/job",
    "memory MB", "pick-up ms, p50 / p99", "20 jobs of 2 s after kill -9",
)  # fmt: skip


def markdown(outcome: Outcome) -> str:
    """The table with what it was measured on, and what failed."""
    lines = [
        f"{outcome.date}; {outcome.machine}, Python {outcome.python}; {', '.join(_brokers(outcome))}; "
        f"medians of {outcome.rounds} interleaved rounds of {outcome.jobs:,} no-op jobs.",
        "",
        f"| {' | '.join(HEADS)} |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|",
        *(_row(result) for result in outcome.results if result.turns),
    ]
    if failed := [result for result in outcome.results if result.error is not None]:
        lines += ["", "Failed:", ""]
        lines += [f"- {_title(result)} {result.version}: {result.error}" for result in failed]
    versions = ", ".join(
        dict.fromkeys(result.version for result in outcome.results if result.name != "penstock")
    )
    return "\n".join([*lines, "", f"Versions: {versions}.", ""])


def document(outcome: Outcome) -> dict[str, Any]:
    """Everything measured, and the medians of it."""
    found: dict[str, Any] = msgspec.to_builtins(outcome)
    for result, row in zip(outcome.results, found["results"], strict=True):
        if result.turns:
            row["medians"] = medians(result.turns)
        if result.turns and result.beside:
            row["ratio"] = round(ratio(result), 3)
    return found


def medians(turns: Sequence[Turn]) -> dict[str, float | None]:
    p50, p99 = quantiles([wait for turn in turns for wait in turn.waits_ms])
    bulk = [turn.bulk_s for turn in turns if turn.bulk_s is not None]
    return {
        "jobs_s": median(turn.jobs_s for turn in turns),
        "single_s": median(turn.single_s for turn in turns),
        "bulk_s": median(bulk) if bulk else None,
        "cpu_us": median(turn.cpu_us for turn in turns),
        "memory_mb": median(turn.memory_mb for turn in turns),
        "p50_ms": p50,
        "p99_ms": p99,
    }


def ratio(result: Result) -> float:
    """Penstock's throughput as a multiple of the peer's: the median of neighbouring turns."""
    return median(
        ours.jobs_s / theirs.jobs_s for ours, theirs in zip(result.beside, result.turns, strict=False)
    )


def quantiles(waits: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(waits)
    p50, p99 = (ordered[min(len(ordered) - 1, round(share * len(ordered)))] for share in (0.5, 0.99))
    return p50, p99


def chart(outcome: Outcome) -> str:
    """Throughput, a group for each engine."""
    shown = [result for result in outcome.results if result.turns]
    groups = []
    for engine, results in groupby(shown, key=lambda one: one.beside_engine or one.engine):
        bars = [Bar(_label(one, engine), _rate(one.turns), one.name == "penstock") for one in results]
        bars.sort(key=lambda bar: -bar.value)
        groups.append(Group(f"{ENGINE_TITLES[engine]}: no-op jobs/s, two worker processes", bars))
    return svg(f"Throughput beside other queues, {outcome.date}", groups)


def write(outcome: Outcome, folder: Path) -> None:
    """peers.json, peers.svg, and the part of peers.md between its marks."""
    (folder / "peers.json").write_bytes(encoded(outcome))
    (folder / "peers.svg").write_text(chart(outcome))
    page = folder / "peers.md"
    page.write_text(placed(page.read_text(), f"{PICTURE}\n\n{markdown(outcome)}"))


def encoded(outcome: Outcome) -> bytes:
    """The document as JSON with a line for each result, which is what changes from run to run."""
    found = document(outcome)
    results = b",\n".join(map(msgspec.json.encode, found.pop("results")))
    return msgspec.json.encode(found)[:-1] + b',"results":[\n' + results + b"\n]}\n"


def placed(page: str, table: str) -> str:
    """The page with the table between its marks."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} and {END}")
    return f"{before}{begin}\n{table}{end}{after}"


def _brokers(outcome: Outcome) -> Iterator[str]:
    return iter(dict.fromkeys(result.broker for result in outcome.results if result.broker))


def _title(result: Result) -> str:
    return f"{result.title}, {ENGINE_TITLES[result.engine]}"


def _label(result: Result, engine: str) -> str:
    return result.title if result.engine == engine else _title(result)


def _rate(turns: Sequence[Turn]) -> float:
    return median(turn.jobs_s for turn in turns)


def _row(result: Result) -> str:
    found = medians(result.turns)
    beside = f"{_rate(result.beside):,.0f}" if result.beside else ""
    times = f"{ratio(result):.1f}" if result.beside else ""
    name = f"**{_title(result)}**" if result.name == "penstock" else _title(result)

    def show(key: str) -> str:
        return "-" if found[key] is None else f"{found[key]:,.0f}"

    cells = [name, show("jobs_s"), beside, times]
    cells += map(show, ("single_s", "bulk_s", "cpu_us", "memory_mb"))
    cells.append(f"{found['p50_ms']:.1f} / {found['p99_ms']:.1f}")
    cells.append("" if result.recovery is None else str(result.recovery))
    return f"| {' | '.join(cells)} |"
