"""Horizontal bars as SVG, readable on light and on dark ground; text alone where no picture is shown."""

from collections.abc import Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

WIDTH, LABEL, VALUE = 760, 190, 80
BAR, GAP, HEAD = 18, 7, 34
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .head { font-weight: 600 }
  .value { fill: #57606a }
  .bar { fill: #8c959f }
  .ours { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .value { fill: #9198a1 }
    .bar { fill: #6e7681 }
    .ours { fill: #4493f8 }
  }
"""


class Bar(NamedTuple):
    label: str
    value: float
    ours: bool = False


class Group(NamedTuple):
    """Bars under one heading, with a scale of their own."""

    title: str
    bars: Sequence[Bar]


def svg(title: str, groups: Sequence[Group]) -> str:
    """The whole picture, with its text for those who cannot see it."""
    parts: list[str] = []
    y = 0
    for group in groups:
        parts.append(f'<text class="head" x="0" y="{y + HEAD - 12}">{escape(group.title)}</text>')
        y += HEAD
        longest = max((bar.value for bar in group.bars), default=0) or 1
        for bar in group.bars:
            parts += _bar(bar, y, (WIDTH - LABEL - VALUE) * bar.value / longest)
            y += BAR + GAP
    spoken = "; ".join(
        f"{group.title}: " + ", ".join(f"{bar.label} {bar.value:,.0f}" for bar in group.bars)
        for group in groups
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + GAP}" width="{WIDTH}" role="img">'
    )
    lines = [
        head,
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(spoken)}</desc>",
        f"<style>{STYLE}</style>",
    ]
    return "\n".join([*lines, *parts, "</svg>", ""])


def _bar(bar: Bar, y: int, length: float) -> list[str]:
    kind = "bar ours" if bar.ours else "bar"
    middle = y + BAR - 5
    return [
        f'<text x="{LABEL - 8}" y="{middle}" text-anchor="end">{escape(bar.label)}</text>',
        f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{max(1.0, length):.1f}" height="{BAR}" rx="2"/>',
        f'<text class="value" x="{LABEL + max(1.0, length) + 6:.1f}" y="{middle}">{bar.value:,.0f}</text>',
    ]
