"""What a run came to, as a table."""

from collections.abc import Sequence
from statistics import median

from rich.table import Table

from tests.chaos.faults.inside import POINTS
from tests.chaos.runner import Verdict

SHOWN = 5
"""Findings of one checker that are shown."""


def seconds(values: Sequence[float]) -> str:
    """p50 and the largest."""
    finite = [value for value in values if value != float("inf")]
    if not finite:
        return "none" if not values else f"{len(values)} never"
    never = len(values) - len(finite)
    text = f"p50 {median(finite):.2f} s, max {max(finite):.2f} s, of {len(finite)}"
    return f"{text}; {never} never" if never else text


def table(verdicts: Sequence[Verdict]) -> Table:
    """One column for each run."""
    shown = Table(title="chaos", show_lines=False)
    shown.add_column("")
    for one in verdicts:
        shown.add_column(f"{one.engine}, seed {one.seed}")

    def row(name: str, values: list[str]) -> None:
        shown.add_row(name, *values)

    row("seconds", [f"{one.seconds:.0f}" for one in verdicts])
    row("operations", [f"{sum(one.operations.values()):,}" for one in verdicts])
    for phase in ("ok", "failed", "unknown"):
        row(f"  {phase}", [f"{one.operations.get(phase, 0):,}" for one in verdicts])
    row("jobs", [f"{one.jobs:,}" for one in verdicts])
    row("runs", [f"{one.runs:,}" for one in verdicts])
    row("jobs of schedules", [f"{one.ticks:,}" for one in verdicts])
    row("elections", [f"{one.elections:,}" for one in verdicts])
    row("faults", [f"{sum(one.faults.values()):,}" for one in verdicts])
    for kind in sorted({kind for one in verdicts for kind in one.faults}):
        row(f"  {kind}", [str(one.faults.get(kind, "")) for one in verdicts])
    for kind in ("process", "host"):
        row(
            f"rescue, {kind} died alone",
            [
                seconds([each.after_s for each in one.rescues if each.kind == kind and each.alone])
                for one in verdicts
            ],
        )
    row("rescue, amid faults", [seconds([e.after_s for e in one.rescues if not e.alone]) for one in verdicts])
    row("named points of death", [f"{len(one.points)} of {len(POINTS)}" for one in verdicts])
    caught_up = [f"{one.caught_up_s:.1f} s" if one.caught_up_s is not None else "never" for one in verdicts]
    row("schedules caught up after healing", caught_up)
    drained = [f"{one.drained_s:.1f} s" if one.drained_s is not None else "never" for one in verdicts]
    row("drained after healing", drained)
    for checker in verdicts[0].findings if verdicts else ():
        row(checker, [_light(one, checker) for one in verdicts])
    return shown


def _light(one: Verdict, checker: str) -> str:
    found = one.findings[checker]
    return f"[red]RED: {len(found)}[/red]" if found else "[green]green[/green]"


def findings(one: Verdict) -> list[str]:
    """What was wrong, and how to see it again."""
    lines = []
    for checker in one.red:
        found = one.findings[checker]
        lines += [f"{one.engine}: {checker}: {text}" for text in found[:SHOWN]]
        if len(found) > SHOWN:
            lines.append(f"{one.engine}: {checker}: ... {len(found) - SHOWN} more")
    if one.folder:
        lines.append(f"history and logs: {one.folder}")
    if one.red:
        lines.append(
            f"again: ./dev chaos --engine {one.engine} --seed {one.seed} --minutes {one.seconds / 60:.2f}"
        )
    return lines
