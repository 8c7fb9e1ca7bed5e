"""What was measured, for people and for machines."""

import os
import platform
from collections.abc import Sequence
from statistics import median
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from rich.table import Table

from tidemill.model.version import __version__


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One figure: the median of its turns."""

    measure: Annotated[str, Meta(description="what was measured")]
    case: Annotated[str, Meta(description="how")]
    unit: Annotated[str, Meta(description="jobs/s, us/job, ms, MB or % of a core")]
    value: Annotated[float, Meta(description="the median of the turns")]
    values: Annotated[list[float], Meta(description="each turn")]


class BenchShape(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the benchmark."""

    tidemill: Annotated[str, Meta(description="its version")]
    python: str
    engine: Annotated[str, Meta(description="the URL, without a password")]
    cores: int
    jobs: Annotated[int, Meta(description="jobs of one turn")]
    figures: list[Figure]


def figure(measure: str, case: str, unit: str, values: Sequence[float]) -> Figure:
    """A figure of some turns, rounded to what can be known."""
    kept = [round(value, 3) for value in values]
    return Figure(measure=measure, case=case, unit=unit, value=round(median(kept), 3), values=kept)


def bench_shape(engine: str, jobs: int, figures: list[Figure]) -> BenchShape:
    return BenchShape(
        tidemill=__version__,
        python=platform.python_version(),
        engine=engine,
        cores=os.cpu_count() or 1,
        jobs=jobs,
        figures=figures,
    )


def table(title: str, figures: Sequence[Figure]) -> Table:
    """The medians, with the spread of the turns."""
    grid = Table(title=title)
    for head, options in (("measure", {}), ("case", {}), ("", _RIGHT), ("unit", {}), ("spread", _RIGHT)):
        grid.add_column(head, no_wrap=True, **options)
    last = ""
    for found in figures:
        if last and found.measure != last:
            grid.add_section()
        name = "" if found.measure == last else found.measure
        grid.add_row(name, found.case, _number(found.value), found.unit, _spread(found.values))
        last = found.measure
    return grid


_RIGHT: dict[str, Any] = {"justify": "right"}


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}" if value >= 10 else f"{value:,.2f}"


def _spread(values: Sequence[float]) -> str:
    return f"{_number(min(values))} - {_number(max(values))}" if len(values) > 1 else ""
