"""A run that leaves a process behind ends it, names it and fails."""

import os

import pytest

from tests.leash import MARK
from tests.leftovers import carrying

LEAVES_ONE = """
import subprocess, sys

def test_leaves_one():
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
"""


@pytest.fixture
def own_run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A run of its own, which finds no mark and so makes one."""
    monkeypatch.delenv(MARK)
    monkeypatch.setenv("PYTHONPATH", str(pytester._request.config.rootpath))
    return pytester


def test_what_is_left_behind_is_ended_and_named(own_run: pytest.Pytester) -> None:
    own_run.makepyfile(LEAVES_ONE)
    result = own_run.runpytest_subprocess("-p", "tests.leftovers", "-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["*processes that tests have left behind*", "*time.sleep(600)*"])
    assert result.ret == pytest.ExitCode.TESTS_FAILED


def test_a_tidy_run_passes(own_run: pytest.Pytester) -> None:
    own_run.makepyfile("def test_nothing(): pass")
    result = own_run.runpytest_subprocess("-p", "tests.leftovers", "-p", "no:cacheprovider")
    assert result.ret == pytest.ExitCode.OK


def test_those_of_other_runs_are_not_seen() -> None:
    assert os.getpid() not in set(carrying(os.environ[MARK]))
    assert not list(carrying("somebody-else"))
