"""A pytest plugin that holds the suite to the table of promises, docs/features.md.

A test says which promises it proves, and may run on several engines:

    @pytest.mark.row("A3", "B2")
    async def test_due_jobs_are_promoted_once(engine_mode: str) -> None: ...

The engine of a test is its parameter `engine_mode`, such as "sqlite-file"; the part before the first dash is
the engine family. A test without that parameter belongs to no engine.

After a full run (no path, no -k, -m, --row or the like) every row whose status starts with "claimed" must
have passed and must not have failed, on each engine family that its row names: `all` (those of `row_engines`
in pyproject.toml), `any` (one passing test is enough, with or without an engine), or a list of families.
Otherwise the run fails. A sampled test (`tests.selection`) proves nothing: the next run may leave it out.

A family of which every test was skipped was not available on this machine. Its rows are excused and the run
ends with "NOT TESTED: ..."; with TIDEMILL_REQUIRE_ALL=1, as in CI, that fails the run instead.

Under xdist the workers attach rows and engine to their reports; the controlling process alone adds up and
judges.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

NO_ENGINE = "no engine"
ROW_LINE = re.compile(r"\|\s*([A-Z][0-9]+)\s*\|")
CELL_BORDER = re.compile(r"(?<!\\)\|")


# The table of promises


@dataclass(frozen=True)
class Promise:
    row: str
    engines: frozenset[str] | None  # the families that must prove it; None: any test will do
    claimed: bool


def read_promises(text: str, families: Sequence[str]) -> dict[str, Promise]:
    """The rows of docs/features.md by name. ValueError tells which line cannot be read, and why."""
    promises: dict[str, Promise] = {}
    for line in text.splitlines():
        found = ROW_LINE.match(line)
        if found is None:
            continue
        row = found[1]
        cells = [cell.strip() for cell in CELL_BORDER.split(line)[1:-1]]
        if len(cells) != 5:
            raise ValueError(
                f"row {row} has {len(cells)} cells; it needs: row, promise, public name, engines, status"
            )
        if row in promises:
            raise ValueError(f"row {row} stands twice")
        engines, status = cells[3], cells[4]
        if not status.startswith(("claimed", "open")):
            raise ValueError(f'row {row} has the status "{status}"; it must start with "claimed" or "open"')
        promises[row] = Promise(row, _required_families(engines, families), status.startswith("claimed"))
    return promises


def _required_families(cell: str, families: Sequence[str]) -> frozenset[str] | None:
    if cell == "any":
        return None
    return frozenset(families if cell == "all" else (name.strip() for name in cell.split(",")))


# What the run has shown


@dataclass
class Proof:
    """What the tests of one row have shown, counted by engine mode."""

    passed: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)


@dataclass
class TestRun:
    """One test, its phases taken together: failed if any phase failed, else passed if its body did."""

    __test__ = False

    rows: Sequence[str]
    mode: str
    sampled: bool = False
    outcome: str = "skipped"
    skip_reason: str = ""


class Tally:
    """Adds up the reports of one run."""

    def __init__(self) -> None:
        self._runs: dict[str, TestRun] = {}

    def add(self, report: pytest.TestReport) -> None:
        seen = dict(report.user_properties)
        rows, mode = seen.get("rows", ()), seen.get("engine_mode", NO_ENGINE)
        assert isinstance(rows, Sequence)
        run = self._runs.setdefault(report.nodeid, TestRun(rows, str(mode), "sampled" in seen))
        if report.failed:
            run.outcome = "failed"
        elif report.skipped:
            run.skip_reason = _skip_reason(report)
        elif report.when == "call" and run.outcome != "failed" and not hasattr(report, "wasxfail"):
            run.outcome = "passed"

    def proofs(self) -> dict[str, Proof]:
        proofs: dict[str, Proof] = {}
        for run in self._runs.values():
            for row in run.rows:
                proof = proofs.setdefault(row, Proof())
                if run.outcome == "failed":
                    proof.failed[run.mode] += 1
                elif run.outcome == "passed" and not run.sampled:
                    proof.passed[run.mode] += 1
        return proofs

    def unavailable(self) -> dict[str, str]:
        """The families of which every test was skipped, each with a reason that was given."""
        ran = {family_of(run.mode) for run in self._runs.values() if run.outcome != "skipped"}
        skipped = {
            family_of(run.mode): run.skip_reason for run in self._runs.values() if run.outcome == "skipped"
        }
        return {family: why for family, why in skipped.items() if family not in {*ran, NO_ENGINE}}


def family_of(mode: str) -> str:
    return mode.partition("-")[0]


def _skip_reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return ""


def broken_promises(
    promises: Iterable[Promise], proofs: dict[str, Proof], excused: Iterable[str]
) -> list[str]:
    """One line for each claimed row that the run did not prove."""
    return [
        f"{promise.row}: {problem}"
        for promise in promises
        if promise.claimed and (problem := _problem(promise, proofs.get(promise.row, Proof()), set(excused)))
    ]


def _problem(promise: Promise, proof: Proof, excused: set[str]) -> str:
    if proof.failed:
        return "failed on " + ", ".join(sorted(proof.failed))
    proven = {family_of(mode) for mode in proof.passed}
    if promise.engines is None:
        return "" if proven else "claimed, but no test of it passed"
    missing = promise.engines - proven - excused
    return "claimed, but no test of it passed on " + ", ".join(sorted(missing)) if missing else ""


# The plugin


class Rows:
    """Registered in every process of the run. Reports and the end of the run are for the controlling one."""

    def __init__(self, config: pytest.Config, promises: dict[str, Promise]) -> None:
        self._promises = promises
        self._selected = set(config.getoption("--row"))
        self._judges = _is_controlling(config) and is_full_run(config) and not config.option.collectonly
        self._tally = Tally()
        self._broken: list[str] = []

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        for item in items:
            if rows := rows_of(item):
                item.user_properties.append(("rows", rows))
            if (mode := engine_mode(item)) is not None:
                item.user_properties.append(("engine_mode", mode))
        if self._selected:
            dropped = [item for item in items if self._selected.isdisjoint(rows_of(item))]
            config.hook.pytest_deselected(items=dropped)
            items[:] = [item for item in items if not self._selected.isdisjoint(rows_of(item))]

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if unknown := [row for row in rows_of(item) if row not in self._promises]:
            pytest.fail(
                f"unknown row {', '.join(unknown)}: the table of promises does not have it", pytrace=False
            )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._judges:
            self._tally.add(report)

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        ended = exitstatus in (
            pytest.ExitCode.OK,
            pytest.ExitCode.TESTS_FAILED,
            pytest.ExitCode.NO_TESTS_COLLECTED,
        )
        self._judges = self._judges and ended and not session.shouldfail
        if not self._judges:
            return
        unavailable = self._tally.unavailable()
        self._broken = broken_promises(self._promises.values(), self._tally.proofs(), unavailable)
        if self._broken or (unavailable and _requires_all()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._judges:
            return
        terminalreporter.section("rows proven")
        proofs = self._tally.proofs()
        for row in sorted(proofs, key=lambda row: (row[0], int(row[1:]))):
            if shown := ", ".join(f"{mode} {count}" for mode, count in sorted(proofs[row].passed.items())):
                note = "" if row in self._promises and self._promises[row].claimed else "  (not claimed)"
                terminalreporter.write_line(f"{row:<4} {shown}{note}")
        for line in self._broken:
            terminalreporter.write_line(f"NOT PROVEN: {line}", red=True)
        if unavailable := self._tally.unavailable():
            shown = ", ".join(
                f"{family} ({why})" if why else family for family, why in sorted(unavailable.items())
            )
            terminalreporter.write_line(
                f"NOT TESTED: {shown}", red=_requires_all(), yellow=not _requires_all()
            )


def rows_of(item: pytest.Item) -> list[str]:
    return sorted({row for mark in item.iter_markers("row") for row in mark.args})


def engine_mode(item: pytest.Item) -> str | None:
    callspec = getattr(item, "callspec", None)
    mode = callspec.params.get("engine_mode") if callspec is not None else None
    return None if mode is None else str(mode)


def _is_controlling(config: pytest.Config) -> bool:
    return not hasattr(config, "workerinput")


def is_full_run(config: pytest.Config) -> bool:
    chosen = (
        config.args_source is pytest.Config.ArgsSource.ARGS or config.invocation_params.dir != config.rootpath
    )
    narrowing = (
        "keyword",
        "markexpr",
        "row",
        "lf",
        "stepwise",
        "deselect",
        "ignore",
        "ignore_glob",
    )
    return not chosen and not any(config.getoption(name, None) for name in narrowing)


def _requires_all() -> bool:
    return os.environ.get("TIDEMILL_REQUIRE_ALL") == "1"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("row_table", "the page with the table of promises", default="docs/features.md")
    parser.addini("row_engines", "the engine families of this project", type="args", default=[])
    parser.addoption(
        "--row", action="append", default=[], metavar="ROW", help="run only the tests of this row"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "row(name, ...): the promises of docs/features.md that this test proves"
    )
    table = Path(config.rootpath, config.getini("row_table"))
    try:
        promises = read_promises(table.read_text(encoding="utf-8"), config.getini("row_engines"))
    except (OSError, ValueError) as error:
        raise pytest.UsageError(f"{table}: {error}") from error
    config.pluginmanager.register(Rows(config, promises), "tidemill-rows")
