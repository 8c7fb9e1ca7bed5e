"""The steps of the pipeline that a runner takes itself."""

from typing import Protocol

from tidemill.worker.running.outcomes import Ending
from tidemill.worker.running.run import Run


class Steps(Protocol):
    """What a runner calls. `RunSteps` has it."""

    def start(self, run: Run) -> None:
        """Its function is about to be called, here and now. From any thread."""
        ...

    def begin_clock(self, run: Run) -> None:
        """It is about to run in another process; its timeout counts from now."""
        ...

    def watch(self, run: Run) -> None:
        """It has started, and its deadline is to be kept. On the loop."""
        ...

    def end(self, run: Run, ending: Ending) -> None:
        """It has ended. On the loop."""
        ...
