"""Planted bugs: mistakes as somebody might make them, patched into the processes of a run.

Each names the checker that has to find it, and the faults under which it shows. `CHAOS_PLANT=name` in the
environment of a process plants it there; shipped code has no switch for any of them.
"""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NamedTuple

from tests.chaos.plan import Step

VARIABLE = "CHAOS_PLANT"
RATE = 25.0
PREPARE_S = 120
MODULES = ("worker", "controller", "sqlite", "postgres", "redis")


class Plant(NamedTuple):
    """One bug."""

    engine: str
    checker: str
    plan: Sequence[Step]
    rate: float
    environment: dict[str, str]
    patch: Callable[[], None]


PLANTS: dict[str, Plant] = {}


def plant(
    engine: str, checker: str, *steps: Step, rate: float = RATE, **environment: str
) -> Callable[[Callable[[], None]], None]:
    """Register a patch."""

    def add(patch: Callable[[], None]) -> None:
        PLANTS[patch.__name__] = Plant(engine, checker, steps, rate, environment, patch)

    return add


def step(
    at_s: float, kind: str, length_s: float = 0.0, target: int = 0, *, all_of_them: bool = False
) -> Step:
    """One fault of a directed plan."""
    return Step(at_s, kind, length_s, target, 0 if all_of_them else 1)


CALM = (step(1, "signals doubled", 0.2),)
"""Nothing is wrong, and the run is a long one."""
ZOMBIES = (
    step(2.5, "stop member", 3.8, 0),
    step(7.0, "stop member", 3.8, 1),
    step(11.5, "stop member", 3.8, 2),
)
"""One after the other is stopped past its lease, while its jobs run elsewhere, and then wakes up."""


def load() -> dict[str, Plant]:
    for module in MODULES:
        import_module(f"{__name__}.{module}")
    return PLANTS


def plant_from_environment() -> None:
    """In a process of a run."""
    name = os.environ.get(VARIABLE)
    if name:
        load()[name].patch()


async def prepare(url: str, name: str) -> None:
    """Make the schema, with the bug if there is one: in a process of its own, so that ours stays sound."""
    program = (
        "import sys, asyncio\n"
        "from tidemill.engine.registry import connect\n"
        "from tests.chaos import plants\n"
        "plants.plant_from_environment()\n"
        "async def main(): await (await connect(sys.argv[1])).close()\n"
        "asyncio.run(main())\n"
    )
    environment = {**os.environ, VARIABLE: name}
    command = [sys.executable, "-c", program, url]
    await asyncio.to_thread(subprocess.run, command, env=environment, check=True, timeout=PREPARE_S)
