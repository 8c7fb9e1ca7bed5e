"""From a seed to the faults of a run: a pure function, so that a run can be played again."""

import random
from collections.abc import Sequence

import msgspec

QUIET_FIRST_S = 1.0
ALONE_SHARE = 0.5
"""Of the faults that come alone; the others come two or three at a time."""
GAP_S = (0.3, 2.5)
DEATHS = ("kill worker", "kill supervisor", "kill member", "kill controller")
QUIET_S = (3.0, 8.0)
"""Before and after a death that comes alone, so that the time of the rescue can be measured ..."""
LONG_S = 60.0
"""... in a run of this length or more."""
LENGTHS_S = (0.2, 0.6, 1.5, 3.0, 5.0)
"""Around the beat (0.5 s) and the lease (2.5 s) of a run."""
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
    often as the others, and none twice before all have come."""
    dice = random.Random(seed)
    steps: list[Step] = []
    deck: list[str] = []
    at_s = QUIET_FIRST_S
    while at_s < seconds:
        together = 1 if dice.random() < ALONE_SHARE else dice.randint(2, 3)
        longest_s = 0.0
        for _ in range(together):
            if not deck:
                deck = dice.sample(sorted(kinds), len(kinds))
            lonely = together == 1 and deck[-1] in DEATHS and seconds >= LONG_S
            at_s += QUIET_S[0] * lonely
            length_s = min(dice.choice(LENGTHS_S), max(0.2, seconds - at_s))
            start_s = at_s + dice.uniform(0, 0.5) * (together > 1)
            steps.append(
                Step(
                    round(start_s, 3), deck.pop(), length_s, dice.randrange(TARGETS), dice.randrange(1 << 30)
                )
            )
            longest_s = max(longest_s, QUIET_S[1] if lonely else length_s)
        at_s += longest_s + dice.uniform(*GAP_S)
    return steps
