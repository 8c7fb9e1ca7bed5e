"""What side by side came to: a table in Markdown, the same as JSON, and a chart."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from statistics import median
from typing import Any

import msgspec
from msgspec.structs import replace

from bench.chart import Bar, Group, svg
from bench.peers.contender import Turn
from bench.side_by_side import Outcome, Result

PICTURE = "![Throughput beside other queues](peers.svg)"
BEGIN, END = "<!-- measured -->", "<!-- end of measured -->"
ENGINE_TITLES = {"sqlite": "SQLite", "postgres": "PostgreSQL", "redis": "Redis", "rabbitmq": "RabbitMQ"}
HEADS = (
    "queue", "jobs/s", "Tidemill beside it", "ratio", "enqueue/s, one by one", "in bulk", "CPU us/job",
    "memory MB", "pick-up ms, p50 / p99", "20 jobs of 2 s after kill -9",
)  # fmt: skip


def markdown(outcome: Outcome) -> str:
    """The table with what it was measured on, and what failed."""
    rounds = "one round" if outcome.rounds == 1 else f"medians of {outcome.rounds} interleaved rounds"
    lines = [
        f"{outcome.date}; {outcome.machine}, Python {outcome.python}; {', '.join(_brokers(outcome))}; "
        f"{rounds} of {outcome.jobs:,} no-op jobs{outcome.note and f'; {outcome.note}'}.",
        "",
        f"| {' | '.join(HEADS)} |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|",
        *(_row(result) for result in outcome.results if result.turns),
    ]
    if failed := [result for result in outcome.results if result.error is not None]:
        lines += ["", "Failed:", ""]
        lines += [f"- {_title(result)} {result.version}: {result.error}" for result in failed]
    versions = ", ".join(
        dict.fromkeys(result.version for result in outcome.results if result.name != "tidemill")
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
    """Tidemill's throughput as a multiple of the peer's: the median of neighbouring turns."""
    return median(
        ours.jobs_s / theirs.jobs_s for ours, theirs in zip(result.beside, result.turns, strict=False)
    )


def quantiles(waits: Sequence[float]) -> tuple[float, float]:
    ordered = sorted(waits)
    p50, p99 = (ordered[min(len(ordered) - 1, round(share * len(ordered)))] for share in (0.5, 0.99))
    return p50, p99


def chart(runs: Sequence[Outcome]) -> str:
    """Throughput, a group for each engine."""
    shown = [result for run in runs for result in run.results if result.turns]
    groups = []
    for engine, title in ENGINE_TITLES.items():
        there = [one for one in shown if (one.beside_engine or one.engine) == engine]
        bars = [Bar(_label(one, engine), _rate(one.turns)) for one in there if one.name != "tidemill"]
        if ours := [turn for one in there if one.name == "tidemill" for turn in one.turns]:
            bars.append(Bar("Tidemill", _rate(ours), ours=True))
        bars.sort(key=lambda bar: -bar.value)
        if bars:
            groups.append(Group(f"{title}: no-op jobs/s, two worker processes", bars))
    dates = sorted({run.date for run in runs})
    return svg(f"Throughput beside other queues, {' to '.join(dict.fromkeys((dates[0], dates[-1])))}", groups)


def write(outcome: Outcome, folder: Path) -> None:
    """peers.json, peers.svg, and the part of peers.md between its marks. What was published of peers that
    this run has not measured stays, with the date and the size of its own run."""
    figures, page = folder / "peers.json", folder / "peers.md"
    former = msgspec.json.decode(figures.read_bytes(), type=list[Outcome]) if figures.exists() else []
    runs = published(former, outcome)
    figures.write_bytes(b"[\n" + b",\n".join(encoded(run).rstrip() for run in runs) + b"\n]\n")
    (folder / "peers.svg").write_text(chart(runs))
    page.write_text(placed(page.read_text(), shown(runs)))


def shown(runs: Sequence[Outcome]) -> str:
    """The part of the page that is measured: a table for each run."""
    return "\n".join([f"{PICTURE}\n", *map(markdown, runs)])


def published(former: Sequence[Outcome], latest: Outcome) -> list[Outcome]:
    """Runs with every peer once, as it was measured last. Runs of one day and one size are one."""
    again = {result.name for result in latest.results} - {"tidemill"}
    runs = [kept for run in former if (kept := _without(run, again)).results]
    for run in runs:
        if _kind(run) == _kind(latest):
            runs[runs.index(run)] = _joined(run, latest)
            return runs
    return [*runs, latest]


def _kind(run: Outcome) -> tuple[object, ...]:
    return run.date, run.machine, run.python, run.jobs, run.rounds, run.note


def _without(run: Outcome, names: AbstractSet[str]) -> Outcome:
    """What is left of a run. Tidemill stays on the engines of which a peer does."""
    peers = [one for one in run.results if one.name not in names and one.name != "tidemill"]
    engines = {one.beside_engine or one.engine for one in peers}
    ours = [one for one in run.results if one.name == "tidemill" and one.engine in engines]
    return _ordered(run, [*ours, *peers])


def _joined(run: Outcome, latest: Outcome) -> Outcome:
    ours: dict[str, Result] = {}
    for one in (*run.results, *latest.results):
        if one.name == "tidemill":
            before = ours.get(one.engine)
            turns = [*before.turns, *one.turns] if before else one.turns
            ours[one.engine] = replace(one, turns=turns)
    peers = [one for one in (*run.results, *latest.results) if one.name != "tidemill"]
    return _ordered(run, [*ours.values(), *peers])


def _ordered(run: Outcome, results: Sequence[Result]) -> Outcome:
    """By the engine beside which they were measured, Tidemill first."""
    engines = list(ENGINE_TITLES)
    return replace(
        run,
        results=sorted(
            results,
            key=lambda one: (engines.index(one.beside_engine or one.engine), one.name != "tidemill"),
        ),
    )


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
    name = f"**{_title(result)}**" if result.name == "tidemill" else _title(result)

    def show(key: str) -> str:
        return "-" if found[key] is None else f"{found[key]:,.0f}"

    cells = [name, show("jobs_s"), beside, times]
    cells += map(show, ("single_s", "bulk_s", "cpu_us", "memory_mb"))
    cells.append(f"{found['p50_ms']:.1f} / {found['p99_ms']:.1f}")
    cells.append("" if result.recovery is None else str(result.recovery))
    return f"| {' | '.join(cells)} |"
