"""How many processes one worker should have, and when one of them is replaced. Pure decisions.

`tidemill worker -p MIN..MAX` polls once a second. Each poll yields a wish (`processes_wanted`):

- **More** only if all slots are occupied and jobs wait. A waiting job beside a free slot waits for something
  else (a limit, a pause, a task that this worker does not know), and another process would not start it. How
  many more follows from depth and waiting time: enough for what waits to begin within `wait_s`.
- **Fewer** if the work would occupy at most `COMFORT` of the slots of fewer processes.

A wish is not yet a change (`Scaling`). The number grows when two polls in a row want more. It shrinks to the
highest wish of the last `calm_s`, and only after polls have covered all of that time. At constant load it
does not swing: growing takes occupied slots (`FULL`), and after shrinking at most `COMFORT` of them are.
"""

from collections import deque
from math import ceil
from typing import NamedTuple

from tidemill.model.scaling.demand import slots_wanted
from tidemill.model.scaling.process_range import ProcessRange

FULL = 0.95
"""From here on slots count as all occupied: a slot is free for a moment between two jobs."""
COMFORT = 0.7
"""The most that the slots may be occupied after the number of processes has shrunk."""
MEBIBYTE = 1 << 20


class WorkerLoad(NamedTuple):
    """What a worker sees in one poll."""

    processes: int
    """That take jobs now."""
    slots: int
    """Of each process."""
    occupied: float
    """The share of slots that held a job, 0 to 1, on average since the last poll."""
    startable: int
    """This worker's share of the waiting jobs that a free slot would start."""
    run_s: float | None
    """How long a slot is occupied by one job; None: not known."""


def processes_wanted(load: WorkerLoad, wait_s: float) -> int:
    """How many processes this load wants, whatever the bounds."""
    if not load.startable or load.occupied < FULL:
        used = load.occupied * load.processes
        return min(load.processes, ceil(used / COMFORT - 1e-9))
    slots = slots_wanted(
        running=load.processes * load.slots, startable=load.startable, run_s=load.run_s, wait_s=wait_s
    )
    return max(load.processes, ceil(slots / load.slots))


class Scaling:
    """Turns the wishes of many polls into a number of processes that is calm."""

    def __init__(self, bounds: ProcessRange, *, wait_s: float, calm_s: float) -> None:
        self._bounds = bounds
        self._wait_s = wait_s
        self._calm_s = calm_s
        self._wishes: deque[tuple[float, int]] = deque()

    def decide(self, load: WorkerLoad, now_s: float) -> int:
        """How many processes there should be from now on."""
        wanted = self._bounds.clip(processes_wanted(load, self._wait_s))
        wishes = self._wishes
        before = wishes[-1][1] if wishes else load.processes
        wishes.append((now_s, wanted))
        while len(wishes) > 1 and wishes[1][0] <= now_s - self._calm_s:
            wishes.popleft()
        if (grown := min(before, wanted)) > load.processes:
            return grown
        covered = wishes[0][0] <= now_s - self._calm_s
        return min(load.processes, max(wish for _, wish in wishes)) if covered else load.processes

    def forget(self) -> None:
        """A poll failed: what came before says nothing about the time since."""
        self._wishes.clear()


class RecycleBounds(NamedTuple):
    """When a process is replaced by a new one. None: never for this reason."""

    jobs: int | None = None
    mebibytes: int | None = None

    def __bool__(self) -> bool:
        return self.jobs is not None or self.mebibytes is not None

    def reason(self, *, finished: int, memory: int | None) -> str:
        """Why a process that has finished so many jobs and has so much memory is due. Empty: it is not."""
        if self.jobs is not None and finished >= self.jobs:
            return f"it has finished {finished:,} jobs"
        if self.is_above(memory):
            return f"it has {(memory or 0) / MEBIBYTE:,.0f} MiB of memory, more than {self.mebibytes:,}"
        return ""

    def is_above(self, memory: int | None) -> bool:
        """Whether a process has more memory than allowed. What cannot be read is not above."""
        return self.mebibytes is not None and memory is not None and memory > self.mebibytes * MEBIBYTE


NEVER_RECYCLED = RecycleBounds()
