"""What the run is doing, on standard error."""

from collections.abc import Callable

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


class Steps:
    """One bar per measure, and one per long preparation."""

    def __init__(self, console: Console) -> None:
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            console=console,
        )

    def __enter__(self) -> "Steps":
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def say(self, what: str) -> None:
        """A line that stays."""
        self._bars.console.print(what)

    def begin(self, what: str, total: int) -> Callable[..., None]:
        """Announce something of `total` steps; call the answer after each (or with a number)."""
        bar = self._bars.add_task(what, total=total)

        def advance(steps: int = 1) -> None:
            self._bars.advance(bar, steps)

        return advance
