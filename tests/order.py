"""A pytest plugin: what takes long begins early, so that at the end no test process works while others wait.

Each of several test processes is given an equal part of the list, from the front, and those that are done
help others from the back. (The last minutes of a run, 6 of 23, belonged to two or three long tests.)
"""

from collections.abc import Sequence
from typing import TypeVar

import pytest

T = TypeVar("T")

LONG = (
    "tests/contract/test_stateful.py",
    "tests/integration/sqlite/test_killed.py",
    "tests/integration/supervisor/test_poison.py",
    "tests/integration/test_bench.py",
    "tests/integration/cli/test_bench.py",
    "tests/integration/supervisor/test_many_deaths.py",
    "tests/contract/test_reference_is_checked.py",
    "tests/chaos/test_chaos.py",
)
"""Files whose tests take half a minute and more, the longest first."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    processes = int(getattr(config, "workerinput", {}).get("workercount", 1))
    if processes > 1:
        long = [item for file in LONG for item in items if item.nodeid.startswith(f"{file}::")]
        items[:] = dealt(long, items, processes)


def dealt(long: Sequence[T], items: Sequence[T], processes: int) -> list[T]:
    """The items in equal parts, one for each process; each begins with its share of the long ones."""
    parts = [list(long[number::processes]) for number in range(processes)]
    known = set(map(id, long))
    others = [item for item in items if id(item) not in known]
    size = -(-len(items) // processes)
    for part in parts:
        room = max(0, size - len(part))
        part.extend(others[:room])
        del others[:room]
    return [item for part in parts for item in part] + others
