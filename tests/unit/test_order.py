"""The plugin that lets the longest tests begin first, run on a small suite of its own."""

import pytest

SUITE = """
    import pytest

    def test_one(): ...

    @pytest.mark.timeout(5)
    def test_short(): ...

    @pytest.mark.timeout(20)
    def test_long(): ...

    def test_two(): ...

    @pytest.mark.timeout(30)
    def test_longer(): ...
"""


def ordered(pytester: pytest.Pytester) -> list[str]:
    pytester.makeini("[pytest]\ntimeout = 10\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(test_it=SUITE)
    run = pytester.inline_run("-p", "tests.order", "--collect-only", "-q")
    (items,) = [call.items for call in run.getcalls("pytest_collection_modifyitems")]
    return [item.name for item in items]


def test_those_with_a_longer_timeout_come_first(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)
    assert ordered(pytester) == ["test_long", "test_longer", "test_one", "test_short", "test_two"]


def test_each_process_gets_some_of_them(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    assert ordered(pytester) == ["test_long", "test_one", "test_longer", "test_short", "test_two"]
