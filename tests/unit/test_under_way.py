"""`tests.under_way`: what an interrupted run says."""

import pytest

PLUGINS = ("-p", "tests.under_way", "-p", "no:asyncio", "-p", "no:xdist", "-p", "no:cacheprovider")


def test_an_interrupted_run_names_the_tests_that_had_not_ended(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        def test_ends():
            pass

        def test_hangs():
            raise KeyboardInterrupt
        """
    )
    result = pytester.runpytest_inprocess(*PLUGINS, no_reraise_ctrlc=True)
    result.stdout.fnmatch_lines(
        ["*under way when the run was interrupted*", "1 tests had ended*", "* s  *::test_hangs"]
    )
    assert "::test_ends" not in result.stdout.str()
