"""Which tasks this process does not know: learnt by meeting their jobs, and named with every claim.

A job of a task that is not known here is released, and stands aside for workers that know it. From then on
every claim of this process names the task, so that it takes no further job of it. Where a task is defined
later, as in a notebook, the next claim does not name it any more.

Few names are kept, because they travel with every claim. Beyond them nothing is learnt: a job of one more
unknown task is released for a delay each time it comes by.
"""

from tidemill.engine.protocol import UNKNOWN_LIMIT
from tidemill.task.registry import Registry


class UnknownTasks:
    """Of one worker."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._met: dict[str, None] = {}

    def meet(self, task: str) -> bool:
        """A job came by whose task is not known here. False: too many are named already."""
        if task not in self._met and len(self._met) >= UNKNOWN_LIMIT:
            return False
        self._met[task] = None
        return True

    def names(self) -> tuple[str, ...]:
        """What the next claim names."""
        if not self._met:
            return ()
        for task in [task for task in self._met if self._registry.find(task) is not None]:
            del self._met[task]
        return tuple(self._met)
