"""The plugin that lays the long tests between the others, run on a small suite of its own."""

import pytest

LONG = """
    import pytest

    @pytest.mark.timeout({seconds})
    @pytest.mark.parametrize("number", range(4))
    def test_long(number): ...
"""
SHORT = """
    import pytest

    @pytest.mark.timeout(5)
    @pytest.mark.parametrize("number", range(2))
    def test_short(number): ...
"""


def ordered(pytester: pytest.Pytester) -> list[str]:
    pytester.makeini("[pytest]\ntimeout = 10\nasyncio_default_fixture_loop_scope = function")
    shorts = {f"test_{name}": SHORT for name in "bcdefghi"}
    pytester.makepyfile(test_a=LONG.format(seconds=20), test_z=LONG.format(seconds=30), **shorts)
    run = pytester.inline_run("-p", "tests.order", "--collect-only", "-q")
    (items,) = [call.items for call in run.getcalls("pytest_collection_modifyitems")]
    assert len({item.nodeid for item in items}) == len(items)
    return ["L" if item.name.startswith("test_long") else item.path.stem[-1] for item in items]


def test_long_ones_lie_between_files_and_none_comes_last(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    assert "".join(ordered(pytester)) == "bbLccLddLLeeLffLggLLhhii"


def test_each_process_gets_some_of_them(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    order = "".join(ordered(pytester))
    assert order[:12].count("L") == order[12:].count("L") == 4
    assert order.endswith("ii")


def test_a_run_of_long_ones_only(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ntimeout = 10\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(test_a=LONG.format(seconds=20))
    pytester.inline_run("-p", "tests.order", "-q").assertoutcome(passed=4)
