"""Seeds and plans that mean something."""

from typing import NamedTuple

from tests.chaos.plan import Step

SHORT_S, SHORT_RATE = 5.0, 12.0
SHORT_SEEDS = {"sqlite": 3, "postgres": 1, "redis": 1}
"""What `./dev test` plays."""


class Regression(NamedTuple):
    """A plan under which something was once wrong. The steps are kept, not the seed: a seed means other steps
    as soon as there is a new kind of fault."""

    engine: str
    seconds: float
    steps: tuple[Step, ...]


REGRESSIONS: dict[str, Regression] = {
    "an enqueue whose first answer was lost finds no memory": Regression(
        "redis",
        8.0,
        tuple(
            step
            for at_s in (1.0, 2.5, 4.0, 5.5)
            for step in (
                Step(at_s, "reply lost after commit", 0.2, 3, 2),
                Step(at_s + 0.06, "no memory", 0.6, 0, 1),
            )
        ),
    ),
    "a member is stopped for about its lease while another dies": Regression(
        "postgres",
        9.0,
        (
            Step(1.0, "stop member", 2.6, 0, 1),
            Step(1.2, "kill member", 0.2, 1, 1),
            Step(5.0, "stop supervisor", 3.0, 2, 1),
            Step(5.5, "kill worker", 0.2, 0, 1),
        ),
    ),
    "the server is killed while replies are lost": Regression(
        "redis",
        8.0,
        (
            Step(1.0, "reply lost after commit", 0.2, 0, 0),
            Step(1.1, "kill server", 0.6, 0, 1),
            Step(3.0, "reply lost after commit", 0.2, 3, 2),
            Step(3.1, "closed connections", 0.6, 0, 1),
        ),
    ),
    "a job gets a child while it is claimed, and the gate of its key stays closed": Regression(
        "postgres",
        12.0,
        (
            Step(1.0, "long transaction", 0.6, 37, 267918481),
            Step(1.0, "disk full", 1.5, 10, 306535602),
            Step(1.0, "calls lost both ways", 0.6, 11, 210727905),
            Step(2.8, "kill controller", 1.5, 16, 365646682),
            Step(5.1, "reply lost after commit", 4.8, 41, 366946812),
            Step(5.3, "answers lost", 0.2, 42, 608454330),
        ),
    ),
}
"""`./dev chaos --regressions` plays them. The first and the last are for mistakes that were made (the last
shows here by chance, and every time in the contract suite); the others go through all steps of a rescue."""
