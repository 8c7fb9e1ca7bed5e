"""The plugin that holds the suite to its promises, run on small suites of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rows import read_promises

PROJECT = Path(__file__).parents[2]
OWN_TABLE = PROJECT / "docs" / "features.md"
PLUGINS = ("-p", "tests.rows", "-p", "xdist.plugin")

ON_SQLITE = """
    import pytest

    @pytest.fixture(params=["sqlite-file", "sqlite-memory"])
    def engine_mode(request):
        return request.param

    @pytest.mark.row("A1")
    def test_order(engine_mode):
        pass
"""

ON_SQLITE_AND_ABSENT_REDIS = """
    import pytest

    @pytest.fixture(params=["sqlite-file", "redis-server"])
    def engine_mode(request):
        if request.param == "redis-server":
            pytest.skip("no redis-server on PATH")
        return request.param

    @pytest.mark.row("A1")
    def test_order(engine_mode):
        pass
"""


class Suite:
    """A project with a table of promises and one test module."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self._pytester = pytester

    def promises(self, *rows: str, families: str = "sqlite") -> None:
        """Each row is "name, engines, status"; the other cells do not matter here."""
        cells = (row.split(", ", 2) for row in rows)
        table = "".join(
            f"| {name} | a \\| b | x | {engines} | {status} |\n" for name, engines, status in cells
        )
        (self._pytester.path / "features.md").write_text(f"| row | ... |\n|---|---|\n{table}")
        self._pytester.makeini(f"""
            [pytest]
            row_table = features.md
            row_engines = {families}
        """)

    def run(self, source: str, *args: str) -> pytest.RunResult:
        self._pytester.makepyfile(test_suite=source)
        return self._pytester.runpytest(*PLUGINS, *args)


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Suite:
    monkeypatch.delenv("TIDEMILL_REQUIRE_ALL", raising=False)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # loading them all takes a second each time
    return Suite(pytester)


def printed(result: pytest.RunResult, line: str) -> bool:
    return any(line in printed for printed in result.outlines)


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_proven_claim_passes_and_is_listed(suite: Suite, processes: str) -> None:
    suite.promises("A1, all, claimed: engine level")
    result = suite.run(ON_SQLITE, "-n", processes)
    assert result.ret == 0
    assert printed(result, "rows proven")
    assert printed(result, "A1   sqlite-file 1, sqlite-memory 1")
    assert not printed(result, "NOT TESTED")


@pytest.mark.parametrize("processes", ["0", "2"])
def test_a_claim_without_a_test_fails_the_run(suite: Suite, processes: str) -> None:
    suite.promises("A1, all, claimed", "A2, all, claimed")
    result = suite.run(ON_SQLITE, "-n", processes)
    assert result.ret == 1
    result.assert_outcomes(passed=2)
    assert printed(result, "NOT PROVEN: A2: claimed, but no test of it passed on sqlite")


def test_an_open_row_needs_no_test(suite: Suite) -> None:
    suite.promises("A1, all, claimed", "A2, all, open")
    assert suite.run(ON_SQLITE).ret == 0


def test_a_claim_needs_a_test_even_when_there_are_none_at_all(suite: Suite) -> None:
    suite.promises("A1, any, claimed")
    result = suite.run("")
    assert result.ret == 1
    assert printed(result, "NOT PROVEN: A1")


@pytest.mark.parametrize("processes", ["0", "2"])
def test_one_failing_test_breaks_the_claim(suite: Suite, processes: str) -> None:
    suite.promises("A1, all, claimed")
    source = f"""{ON_SQLITE}
    @pytest.mark.row("A1")
    def test_wrong(engine_mode):
        assert engine_mode != "sqlite-memory"
"""
    result = suite.run(source, "-n", processes)
    assert result.ret == 1
    assert printed(result, "NOT PROVEN: A1: failed on sqlite-memory")


@pytest.mark.parametrize(
    "body",
    ["pytest.skip('not today')", "pytest.xfail('known')"],
    ids=["skipped", "expected to fail"],
)
def test_only_a_passing_test_is_a_proof(suite: Suite, body: str) -> None:
    suite.promises("A1, any, claimed")
    source = f"import pytest\n\n@pytest.mark.row('A1')\ndef test_it():\n    {body}\n"
    result = suite.run(source)
    assert result.ret == 1
    assert printed(result, "NOT PROVEN: A1: claimed, but no test of it passed")


def test_a_teardown_that_fails_takes_the_proof_away(suite: Suite) -> None:
    suite.promises("A1, any, claimed")
    source = """
        import pytest

        @pytest.fixture
        def leaky():
            yield
            raise AssertionError("a connection leaked")

        @pytest.mark.row("A1")
        def test_it(leaky):
            pass
    """
    assert printed(suite.run(source), "NOT PROVEN: A1: failed on no engine")


def test_all_means_every_family_of_the_project(suite: Suite) -> None:
    suite.promises("A1, all, claimed", families="sqlite redis")
    result = suite.run(ON_SQLITE)
    assert result.ret == 1
    assert printed(result, "NOT PROVEN: A1: claimed, but no test of it passed on redis")


def test_a_row_may_name_its_families(suite: Suite) -> None:
    suite.promises("A1, sqlite, claimed", families="sqlite redis")
    assert suite.run(ON_SQLITE).ret == 0


def test_a_test_without_an_engine_proves_nothing_about_one(suite: Suite) -> None:
    suite.promises("A1, all, claimed")
    source = "import pytest\n\n@pytest.mark.row('A1')\ndef test_it():\n    pass\n"
    assert suite.run(source).ret == 1


def test_any_takes_a_test_without_an_engine(suite: Suite) -> None:
    suite.promises("A1, any, claimed")
    result = suite.run("import pytest\n\n@pytest.mark.row('A1')\ndef test_it():\n    pass\n")
    assert result.ret == 0
    assert printed(result, "A1   no engine 1")


@pytest.mark.parametrize("processes", ["0", "2"])
def test_an_absent_engine_is_excused_and_named(suite: Suite, processes: str) -> None:
    suite.promises("A1, all, claimed", families="sqlite redis")
    result = suite.run(ON_SQLITE_AND_ABSENT_REDIS, "-n", processes)
    assert result.ret == 0
    assert printed(result, "NOT TESTED: redis (no redis-server on PATH)")


def test_an_absent_engine_is_a_failure_where_all_are_required(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMILL_REQUIRE_ALL", "1")
    suite.promises("A1, all, claimed", families="sqlite redis")
    result = suite.run(ON_SQLITE_AND_ABSENT_REDIS)
    assert result.ret == 1
    assert printed(result, "NOT TESTED: redis (no redis-server on PATH)")


@pytest.mark.parametrize("selection", [("-k", "order"), ("-m", "row"), ("test_suite.py",), ("--row", "A1")])
def test_a_selection_is_not_judged(suite: Suite, selection: tuple[str, ...]) -> None:
    suite.promises("A1, all, claimed", "A2, all, claimed")
    result = suite.run(ON_SQLITE, *selection)
    assert result.ret == 0
    result.assert_outcomes(passed=2)
    assert not printed(result, "rows proven")


def test_the_row_option_runs_the_tests_of_that_row(suite: Suite) -> None:
    suite.promises("A1, all, claimed")
    result = suite.run(f"{ON_SQLITE}\n    def test_other():\n        pass\n", "--row", "A1")
    result.assert_outcomes(passed=2, deselected=1)


def test_a_row_that_the_table_lacks_is_an_error_of_the_test(suite: Suite) -> None:
    suite.promises("B1, all, open")
    result = suite.run(ON_SQLITE)
    assert result.ret == 1
    assert printed(result, "unknown row A1")


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("| A1 | p | x | all | maybe |", 'must start with "claimed" or "open"'),
        ("| A1 | p | all | open |", "has 4 cells"),
        ("| A1 | p | x | all | open |\n| A1 | p | x | all | open |", "stands twice"),
    ],
)
def test_an_unreadable_table_is_refused(table: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_promises(table, ["sqlite"])


def test_a_missing_table_is_refused(suite: Suite) -> None:
    assert suite.run(ON_SQLITE).ret == pytest.ExitCode.USAGE_ERROR


def test_the_table_of_this_project_has_every_row() -> None:
    sections = {"A": 14, "B": 15, "C": 7, "D": 10, "E": 6, "F": 20}
    expected = [f"{letter}{number}" for letter, rows in sections.items() for number in range(1, rows + 1)]
    assert list(read_promises(OWN_TABLE.read_text(encoding="utf-8"), ["sqlite"])) == expected
