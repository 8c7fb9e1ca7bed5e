"""Text for terminals, files and pipes: columns, times, and nothing that draws on the reader's screen."""

import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, TextIO

import click
import msgspec

from tidemill.model.time import MILLISECOND, SECOND, Instant, Span, moment_of

NOTHING = "-"
KIB = 1 << 10

_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}
_ONE_LINE = {**_CONTROL, ord("\n"): " ", ord("\t"): " "}

STATE_COLOURS = {
    "ready": "cyan",
    "running": "blue",
    "completed": "green",
    "dead": "red",
    "healthy": "green",
    "late": "yellow",
    "gone": "red",
}


class Column(NamedTuple):
    """A column of a listing."""

    head: str
    right: bool = False
    state: bool = False
    """Coloured by what it says, on a terminal."""


class Columns:
    """Rows in columns, printed page by page: the first page decides the widths, later ones keep to them, so
    that a million rows need no memory. On a terminal the last column is cut at its edge."""

    GAP = "  "

    def __init__(self, *columns: Column, to_error: bool = False) -> None:
        self._columns = columns
        self._widths: list[int] = []
        self._to_error = to_error
        terminal = is_terminal(sys.stderr if to_error else sys.stdout)
        self._edge = shutil.get_terminal_size().columns if terminal else None

    def print(self, rows: Iterable[Sequence[object]]) -> None:
        """Print some rows, the heads first if they are the first."""
        texts = [[one_line(cell) for cell in row] for row in rows]
        if not self._widths:
            heads = [column.head for column in self._columns]
            self._widths = [max(map(len, cells)) for cells in zip(heads, *texts, strict=True)]
            click.echo(self._line(heads, bold=True), err=self._to_error)
        for row in texts:
            click.echo(self._line(row), err=self._to_error)

    def _line(self, cells: Sequence[str], *, bold: bool = False) -> str:
        shown: list[str] = []
        left = self._edge
        for column, width, cell in zip(self._columns, self._widths, cells, strict=True):
            last = len(shown) == len(cells) - 1
            if last and left is not None and len(cell) > left > 1:
                cell = cell[: left - 1] + "…"  # noqa: PLW2901
            padded = cell.rjust(width) if column.right else cell if last else cell.ljust(width)
            left = None if left is None else left - len(padded) - len(self.GAP)
            colour = STATE_COLOURS.get(cell) if column.state else None
            shown.append(
                click.style(padded, bold=True) if bold else click.style(padded, colour) if colour else padded
            )
        return self.GAP.join(shown).rstrip()


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person reads it. A stream that our parent process closed is None."""
    return stream is not None and stream.isatty()


def json_line(value: Any) -> None:
    """One JSON object on a line of its own."""
    click.echo(msgspec.json.encode(value).decode())


def one_line(text: object) -> str:
    """Text for a cell: on one line, control characters spelled out, nothing shown as a dash."""
    if text is None or text == "":
        return NOTHING
    return str(text).translate(_ONE_LINE)


def lines(text: str) -> str:
    """Text of several lines, control characters spelled out."""
    return text.translate(_CONTROL)


def rfc3339(instant: Instant | None) -> str | None:
    """An instant in UTC as machines read it, to the microsecond."""
    if instant is None:
        return None
    return moment_of(instant).isoformat(timespec="microseconds").replace("+00:00", "Z")


def local(instant: Instant | None) -> str:
    """An instant in the reader's own time, to the second."""
    return NOTHING if instant is None else moment_of(instant).astimezone().isoformat(" ", "seconds")


def length(span: Span | None) -> str:
    """A span as people say it: 0.3 s, 12 s, 4 min 5 s, 3 h 2 min, 5 d 3 h."""
    if span is None:
        return NOTHING
    if span < 10 * SECOND:
        return f"{span / SECOND:.3g} s"
    rest = span // SECOND
    parts: list[str] = []
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if rest >= size or parts:
            parts.append(f"{rest // size} {unit}")
            rest %= size
    return " ".join(part for part in parts[:2] if not part.startswith("0 "))


def about(span: Span | None) -> str:
    """A span that is not known exactly, to one or two digits: 1.2 ms, 160 ms, 3.5 s, 4 min."""
    if span is None:
        return NOTHING
    if span < SECOND:
        return f"{span / MILLISECOND:.{1 if span < 10 * MILLISECOND else 0}f} ms"
    return f"{span / SECOND:.1f} s" if span < 10 * SECOND else length(span)


def size(number: int | None) -> str:
    """Bytes, in the largest unit that leaves a number of one or more."""
    if number is None:
        return NOTHING
    left, units = float(number), ["B", "KiB", "MiB", "GiB"]
    while left >= KIB and len(units) > 1:
        left, units = left / KIB, units[1:]
    return f"{left:,.1f} {units[0]}" if units[0] != "B" else f"{number} B"


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 job`, `1,234 jobs`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
