"""The faults. Each does its harm, waits, and heals what it did; what needs no healing heals by itself.

`needs` names what the store must be able to do. A fault that finds its target gone does nothing more: several
may be under way at once.
"""

import os

from tests.chaos.faults import elected, inside, links, processes, server
from tests.chaos.faults.scene import FAULTS, Scene, play

__all__ = [
    "FAULTS",
    "Scene",
    "elected",
    "inside",
    "kinds_for",
    "links",
    "not_testable",
    "play",
    "processes",
    "server",
]


def kinds_for(able: frozenset[str], *, root: bool) -> list[str]:
    """The faults that can be played here: only root can make a small disk."""
    missing = frozenset() if root else frozenset({"disk"})
    return [kind for kind, one in FAULTS.items() if not one.needs or one.needs in able - missing]


def not_testable(able: frozenset[str]) -> list[str]:
    """Faults that would make sense here and cannot be played on this machine."""
    playable = kinds_for(able, root=os.geteuid() == 0)
    return [kind for kind, one in FAULTS.items() if one.needs in able and kind not in playable]
