"""A pytest plugin: long tests lie between the short ones, and none of them comes last.

Every process of a run gets a part of the list, one after the other, and takes from the others' parts when its
own is done. Long tests wait most of the time, for processes and servers. If all processes waited at once, the
cores would have nothing to do; if one part held most of the long tests, the run would end with them. So each
part gets its share, spread over most of its files. A long test is one whose `timeout` is longer than the
usual one, or one of the folders and files of `SLOW`.
"""

import os
from itertools import groupby

import pytest

SLOW = (
    "tests/chaos/",
    "tests/contract/test_stateful.py",
    "tests/integration/cli/test_bench.py",
    "tests/integration/cli/test_demo.py",
    "tests/integration/events/test_gaps.py",
    "tests/integration/postgres/test_failover.py",
    "tests/integration/postgres/test_outages.py",
    "tests/integration/redis/test_outages.py",
    "tests/integration/redis/test_replicated.py",
    "tests/integration/sqlite/test_killed.py",
    "tests/integration/supervisor/",
    "tests/integration/test_bench.py",
    "tests/integration/transactions/test_complete_killed.py",
)
"""They start processes, and wait for them."""
DONE_AFTER = 0.8
"""The last long test begins when this share of the others is done."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    usual = float(config.getini("timeout") or 0)
    parts = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    longer = [item for item in items if _is_longer(item, usual)]
    others = [item for item in items if not _is_longer(item, usual)]
    bounds = [len(others) * part // parts for part in range(parts + 1)]
    items[:] = [
        item
        for part in range(parts)
        for item in _mixed(longer[part::parts], others[bounds[part] : bounds[part + 1]])
    ]


def _mixed(longer: list[pytest.Item], others: list[pytest.Item]) -> list[pytest.Item]:
    """The long ones between the files of the others: what a file has set up stays until its end."""
    mixed: list[pytest.Item] = []
    done = given = 0
    for _, file in groupby(others, lambda item: item.path):
        due = round(len(longer) * min(1.0, done / (len(others) * DONE_AFTER)))
        mixed += longer[given:due]
        given = due
        tests = list(file)
        mixed += tests
        done += len(tests)
    return mixed + longer[given:]


def _is_longer(item: pytest.Item, usual: float) -> bool:
    mark = item.get_closest_marker("timeout")
    marked = mark is not None and bool(mark.args) and mark.args[0] > usual
    return marked or item.nodeid.startswith(SLOW)
