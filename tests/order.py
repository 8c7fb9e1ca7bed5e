"""A pytest plugin: the longest tests come first.

Several processes share a run. A test of half a minute that begins when the others have nothing left keeps all
cores but one waiting for it. A long test is one whose `timeout` is longer than the usual one.
"""

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    usual = float(config.getini("timeout") or 0)
    items.sort(key=lambda item: not _is_longer(item, usual))  # the others keep their order


def _is_longer(item: pytest.Item, usual: float) -> bool:
    mark = item.get_closest_marker("timeout")
    return mark is not None and bool(mark.args) and mark.args[0] > usual
