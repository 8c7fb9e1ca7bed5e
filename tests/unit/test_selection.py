"""The plugin that says what a full run leaves out, run on small suites of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.selection import STATEFUL, commit, turn

PLUGINS = ("-p", "tests.rows", "-p", "tests.selection", "-p", "xdist.plugin")
ENGINES = """
    import pytest

    @pytest.fixture(params=["sqlite-file", "sqlite-memory", "redis-server"])
    def engine_mode(request):
        return request.param
"""
LAYER = f"""{ENGINES}
    def test_one(engine_mode):
        pass

    @pytest.mark.every_engine
    def test_each(engine_mode):
        pass

    @pytest.mark.every_engine(1)
    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_few(engine_mode, seed):
        pass
"""
SAMPLED = """
    import pytest

    @pytest.mark.sampled(3)
    @pytest.mark.parametrize("name", list("abcdefghijklmnop"))
    def test_it(name):
        pass

    def test_other():
        pass
"""


class Suite:
    """A project with one layer that sees only the protocol."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester
        self.promise()

    def promise(self, *rows: str, second_modes: str = "") -> None:
        table = "".join(f"| {row} | a | x | all | claimed |\n" for row in rows)
        (self._pytester.path / "features.md").write_text(table)
        self._pytester.makeini(f"""
            [pytest]
            row_table = features.md
            row_engines = sqlite redis
            protocol_only = layer
            second_modes = {second_modes}
        """)

    def run(self, source: str, *args: str, folder: str = "layer") -> pytest.RunResult:
        self._pytester.mkdir(folder)
        self._pytester.makepyfile(**{f"{folder}/test_suite": source})
        return self._pytester.runpytest(*PLUGINS, *args)


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # loading them all takes a second each time
    monkeypatch.delenv("TIDEMILL_REQUIRE_ALL", raising=False)
    for name in (STATEFUL, f"{STATEFUL}_SEED"):  # set by the plugin, in this process: undone after the test
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    return Suite(pytester)


def names(result: pytest.RunResult) -> set[str]:
    return {line.split("::")[1].split()[0] for line in result.outlines if " PASSED" in line}


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_layer_is_tested_on_sqlite_and_where_a_mark_says_on_all(suite: Suite, processes: str) -> None:
    result = suite.run(LAYER, "-n", processes)
    result.assert_outcomes(passed=2 + 3 + (6 + 1), deselected=0 if processes == "2" else 1 + 2)


@pytest.mark.parametrize("option", [("--all",), ("layer",), ("-k", "test")])
def test_nothing_is_left_out_of_what_was_asked_for(suite: Suite, option: tuple[str, ...]) -> None:
    suite.run(LAYER, *option).assert_outcomes(passed=3 + 3 + 9)


def test_other_folders_are_tested_on_every_engine(suite: Suite) -> None:
    suite.run(LAYER, folder="engines").assert_outcomes(passed=3 + 3 + 7, deselected=2)


SECOND = f"""{ENGINES}
    @pytest.mark.parametrize("number", range(40))
    def test_both(engine_mode, number):
        pass

    @pytest.mark.parametrize("engine_mode", ["sqlite-memory"], indirect=True)
    def test_alone(engine_mode):
        pass
"""


def test_a_second_mode_has_its_turn_where_the_first_runs_too(suite: Suite) -> None:
    suite.promise(second_modes="sqlite-memory=sqlite-file")
    result = suite.run(SECOND, "-v", "--sample", "one", folder="engines")
    ran = names(result)
    assert sum("redis-server" in name for name in ran) == sum("sqlite-file" in name for name in ran) == 40
    assert 1 <= sum(name.startswith("test_both[sqlite-memory") for name in ran) < 20
    assert "test_alone[sqlite-memory]" in ran


def test_a_sample_has_a_name_by_which_it_is_taken_again(suite: Suite) -> None:
    result = suite.run(SAMPLED, "-v", "--sample", "one")
    result.assert_outcomes(passed=4, deselected=13)
    result.stdout.fnmatch_lines(["sample: one (--sample one takes it again*"])


def test_the_name_chooses(pytester: pytest.Pytester, suite: Suite) -> None:
    first = names(suite.run(SAMPLED, "-v", "--sample", "one"))
    assert names(pytester.runpytest(*PLUGINS, "-v", "--sample", "one")) == first
    assert names(pytester.runpytest(*PLUGINS, "-v", "--sample", "two")) != first


def test_each_has_its_turn() -> None:
    tests = [f"test_it[{name}]" for name in "abcdefghijklmnop"]
    first = {min(tests, key=lambda test: turn(str(sample), test)) for sample in range(100)}
    assert first == set(tests)


def test_random_commands_are_fewer_and_chosen_by_the_sample(suite: Suite) -> None:
    source = f"""
    import os

    def test_it():
        assert os.environ["{STATEFUL}"] == "sample"
        assert int(os.environ["{STATEFUL}_SEED"]) > 0
"""
    suite.run(source).assert_outcomes(passed=1)


@pytest.mark.parametrize("options", [(), ("--all",)])
def test_a_sampled_test_proves_no_promise(suite: Suite, options: tuple[str, ...]) -> None:
    suite.promise("A1")
    source = f"""{ENGINES}
    @pytest.mark.row("A1")
    @pytest.mark.sampled(9)
    def test_sampled(engine_mode):
        pass

    @pytest.mark.row("A1")
    @pytest.mark.every_engine(1)
    def test_few(engine_mode):
        pass
"""
    result = suite.run(source, *options)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["NOT PROVEN: A1: claimed, but no test of it passed on redis"])


def test_a_promise_that_is_proven_only_where_it_is_left_out_fails_the_run(suite: Suite) -> None:
    suite.promise("A1")
    source = f'{ENGINES}\n    @pytest.mark.row("A1")\n    def test_it(engine_mode):\n        pass\n'
    result = suite.run(source)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["NOT PROVEN: A1: claimed, but no test of it passed on redis"])


def test_a_sample_is_named_after_the_commit(tmp_path: Path) -> None:
    assert commit(tmp_path) == "none"
    found = commit(Path(__file__).parents[2])
    assert found == "none" or len(found) == 10
