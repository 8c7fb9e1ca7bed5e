"""What faults act on, and how they are registered and played."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NamedTuple

from tests.chaos.cluster import Cluster, Process
from tests.chaos.history import Recorder
from tests.chaos.plan import Step
from tests.chaos.stores.store import Store
from tests.chaos.times import Times


class Scene(NamedTuple):
    """What faults act on."""

    folder: Path
    cluster: Cluster
    store: Store
    recorder: Recorder
    times: Times
    points: list[str]
    """Named points at which somebody was to die, so far."""

    def member(self, step: Step) -> Process:
        members = self.cluster.members
        return members[step.target % len(members)]


Play = Callable[[Scene, Step], Awaitable[None]]


class Fault(NamedTuple):
    play: Play
    needs: str


FAULTS: dict[str, Fault] = {}


def fault(kind: str, needs: str = "") -> Callable[[Play], Play]:
    def add(play: Play) -> Play:
        FAULTS[kind] = Fault(play, needs)
        return play

    return add


async def play(scene: Scene, step: Step) -> None:
    """One step, written down."""
    began = time.monotonic()
    await FAULTS[step.kind].play(scene, step)
    scene.recorder.write("heal", text=step.kind, began=began)


def say(scene: Scene, step: Step, *, pids: list[int] | None = None, who: str = "") -> None:
    """The harm is done now."""
    scene.recorder.write("fault", text=step.kind, pids=pids or [], member=who, until=step.length_s)
