"""The result, for people and for machines."""

import os
import platform
import sqlite3
from collections.abc import Sequence
from itertools import groupby
from statistics import median
from typing import Any, NamedTuple

import msgspec
from rich.table import Table

from bench.plan import Plan
from bench.rounds import Comparison, Question, Turn


class Figure(NamedTuple):
    """A figure with a bound instead of a reference: less is better."""

    name: str
    unit: str
    values: list[float]
    """By round."""
    most: float | None = None
    """What we are content with."""

    @property
    def value(self) -> float:
        return median(self.values)

    @property
    def met(self) -> bool | None:
        return None if self.most is None else self.value <= self.most


def figures_table(figures: Sequence[Figure]) -> Table:
    """Figures that have no reference."""
    grid = Table(title="bounds, medians of the rounds")
    for head in ("figure", "value", "unit", "spread", "wanted"):
        grid.add_column(head, justify="left" if head in ("figure", "unit") else "right", no_wrap=True)
    for found in figures:
        style = _STYLES[found.met]
        spread = f"{min(found.values):.2f}-{max(found.values):.2f}" if len(found.values) > 1 else ""
        wanted = "" if found.most is None else f"<= {found.most:g}"
        grid.add_row(found.name, f"[{style}]{found.value:.2f}[/]", found.unit, spread, wanted)
    return grid


_STYLES = {True: "green", False: "red", None: "default"}


def table(comparisons: Sequence[Comparison], plan: Plan) -> Table:
    """Medians of the rounds; the ratio is the median of the rounds' own ratios."""
    title = f"jobs/s, durability {plan.durability}, medians of {plan.rounds} interleaved rounds"
    grid = Table(title=title)
    for head in ("case", "jobs/s", "against", "ratio", "spread", "wanted", "CPU us/job", "shares"):
        grid.add_column(head, justify="left" if head == "case" else "right", no_wrap=True)
    for measure, group in groupby(comparisons, key=lambda found: found.question.measure):
        grid.add_section()
        for found in group:
            asked = found.question
            reference = f"{asked.against} {_rate(found.reference):,.0f}"
            verdict = (_ratio(found), _spread(found), _wanted(asked), _cpu(found), _shares(found))
            grid.add_row(f"{measure}: {asked.case}", f"{_rate(found.ours):,.0f}", reference, *verdict)
    return grid


def document(comparisons: Sequence[Comparison], plan: Plan, figures: Sequence[Figure] = ()) -> dict[str, Any]:
    """Everything measured, with what is needed to judge it."""
    return {
        "store": type(plan.store).__name__.removesuffix("Store").lower(),
        "durability": plan.durability,
        "jobs": plan.jobs,
        "rounds": plan.rounds,
        "scale": plan.scale,
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "cores": os.cpu_count(),
        "figures": [{**found._asdict(), "value": found.value, "met": found.met} for found in figures],
        "comparisons": [
            {
                **msgspec.to_builtins(found.question),
                "rates": [turn.rate for turn in found.ours],
                "cpu_us": [turn.cpu for turn in found.ours],
                "reference_rates": [turn.rate for turn in found.reference],
                "reference_cpu_us": [turn.cpu for turn in found.reference],
                "ratio": round(found.ratio, 4),
                "cpu_ratio": round(found.cpu_ratio, 4),
                "busier": found.busier,
                "met": found.met,
            }
            for found in comparisons
        ],
    }


def _rate(turns: Sequence[Turn]) -> float:
    return median(turn.rate for turn in turns)


def _cpu(found: Comparison) -> str:
    ours, other = (median(turn.cpu for turn in turns) for turns in (found.ours, found.reference))
    most = found.question.cpu_wanted
    return f"{ours:.1f} / {other:.1f}" + ("" if most is None else f" (<= {most:g}x: {found.cpu_ratio:.2f})")


def _ratio(found: Comparison) -> str:
    style = _STYLES[found.met]
    return f"[{style}]{found.ratio:.2f}[/]"


def _spread(found: Comparison) -> str:
    return f"{min(found.ratios):.2f}-{max(found.ratios):.2f}"


def _wanted(asked: Question) -> str:
    return f">= {asked.wanted:.2f}" if asked.wanted is not None else ""


def _shares(found: Comparison) -> str:
    if not found.busier:
        return ""
    busier = median(found.busier)
    return f"{100 * busier:.0f}:{100 - 100 * busier:.0f}"
