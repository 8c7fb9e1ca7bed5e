"""From a seed to the faults of a run: a pure function, so that a run can be played again."""

import random
from collections.abc import Sequence

import msgspec

QUIET_FIRST_S = 1.0
ALONE_SHARE = 0.5
"""Of the faults that come alone; the others come two or three at a time."""
GAP_S = (0.3, 2.5)
LONG_S = 60.0
"""A run of this length or more has quiet stretches, in which one process and one host die while nothing else
is wrong, so that the times of these rescues can be measured ..."""
STRETCH_EVERY_S = 70.0
"""... the first in the beginning, the others this long after the one before."""
BEFORE_S, AFTER_PROCESS_S, AFTER_HOST_S = 7.0, 6.0, 9.0
"""How long nothing else happens then."""
PROCESS_DEATH, HOST_DEATHS = "kill worker", ("kill supervisor", "kill member", "kill controller")
LENGTHS_S = (0.2, 0.6, 1.5, 3.0, 5.0)
"""Around the heartbeat (0.5 s) and the lease (2.5 s) of a run."""
TARGETS = 60
"""A number that 1, 2, 3, 4 and 5 members divide."""


class Step(msgspec.Struct, frozen=True):
    """One fault."""

    at_s: float
    kind: str
    length_s: float
    target: int
    """Which member, taken modulo their number."""
    dice: int
    """Seeds whatever else the fault draws."""


def make_plan(seed: int, kinds: Sequence[str], seconds: float) -> list[Step]:
    """Faults of these kinds over this time, one after the other and together; each kind comes up about as
    often as the others, and none twice before all have come. In between, single deaths in quiet stretches."""
    dice = random.Random(seed)
    steps: list[Step] = []
    deck: list[str] = []
    at_s = QUIET_FIRST_S
    stretch_at_s = at_s if seconds >= LONG_S else float("inf")
    while at_s < seconds:
        if at_s >= stretch_at_s:
            at_s = _quiet_stretch(dice, steps, kinds, at_s)
            stretch_at_s = at_s + STRETCH_EVERY_S
            continue
        together = 1 if dice.random() < ALONE_SHARE else dice.randint(2, 3)
        longest_s = 0.0
        for _ in range(together):
            if not deck:
                deck = dice.sample(sorted(kinds), len(kinds))
            length_s = min(dice.choice(LENGTHS_S), max(0.2, seconds - at_s))
            start_s = at_s + dice.uniform(0, 0.5) * (together > 1)
            steps.append(_step(dice, start_s, deck.pop(), length_s))
            longest_s = max(longest_s, length_s)
        at_s += longest_s + dice.uniform(*GAP_S)
    return steps


def _quiet_stretch(dice: random.Random, steps: list[Step], kinds: Sequence[str], at_s: float) -> float:
    """Adds the deaths; when it is over."""
    hosts = [kind for kind in HOST_DEATHS if kind in kinds]
    at_s += BEFORE_S
    if PROCESS_DEATH in kinds:
        steps.append(_step(dice, at_s, PROCESS_DEATH, 0.0))
        at_s += AFTER_PROCESS_S
    if hosts:
        steps.append(_step(dice, at_s, dice.choice(hosts), 0.0))
        at_s += AFTER_HOST_S
    return at_s


def _step(dice: random.Random, at_s: float, kind: str, length_s: float) -> Step:
    return Step(round(at_s, 3), kind, length_s, dice.randrange(TARGETS), dice.randrange(1 << 30))
