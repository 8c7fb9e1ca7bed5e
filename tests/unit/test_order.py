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
"""


def test_those_with_a_longer_timeout_come_first(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\ntimeout = 10\nasyncio_default_fixture_loop_scope = function")
    pytester.makepyfile(test_it=SUITE)
    run = pytester.inline_run("-p", "tests.order", "--collect-only", "-q")
    (items,) = [call.items for call in run.getcalls("pytest_collection_modifyitems")]
    assert [item.name for item in items] == ["test_long", "test_one", "test_short", "test_two"]
