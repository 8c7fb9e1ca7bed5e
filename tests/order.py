"""A pytest plugin: the longest tests come first, in each of the processes that share a run.

Every process gets a part of the list, one after the other, and takes from the others' parts when its own is
done. If one part held most of the long tests, the run would end with them, and cores would wait. A long test
is one whose `timeout` is longer than the usual one, or one of the folders and files of `SLOW`.
"""

import os

import pytest

SLOW = (
    "tests/chaos/",
    "tests/integration/supervisor/",
    "tests/integration/cli/test_bench.py",
    "tests/integration/cli/test_demo.py",
    "tests/integration/test_bench.py",
)
"""They start processes, and wait for them."""


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
        for item in (*longer[part::parts], *others[bounds[part] : bounds[part + 1]])
    ]


def _is_longer(item: pytest.Item, usual: float) -> bool:
    mark = item.get_closest_marker("timeout")
    marked = mark is not None and bool(mark.args) and mark.args[0] > usual
    return marked or item.nodeid.startswith(SLOW)
