"""A pytest plugin that says what a full run leaves out, because other tests or other runs prove it too.

Two kinds of tests are many and say almost the same:

    @pytest.mark.every_engine
    async def test_a_killed_member_loses_nothing(engine_mode: str) -> None: ...

The folders of `protocol_only` in pyproject.toml test layers that see nothing of an engine but the protocol,
which the contract suite proves on each engine. Their tests run on SQLite. Those marked `every_engine` run on
every engine: proofs of a promise, and one proof for each class of failure in which engines differ (time that
passes in the store, connections that break, wake-ups, order, who is fenced off).

    @pytest.mark.sampled(4)
    @pytest.mark.parametrize("name", PLANTS)
    def test_the_suite_finds(name: str) -> None: ...

Of a function with many expensive parameters a run takes as many as the mark says; `every_engine(2)` takes all
of them on SQLite and two on each other engine. The hash of the commit chooses, so that each has its turn and
a run can be repeated: the head of the report names the sample, and `--sample NAME` takes it again. A sampled
test is no proof of a promise (`tests.rows`): the next run may leave it out. Of the contract's random commands
a run takes fewer, and the commit chooses which.

An engine may have a second way to run that differs from the first in how it is connected to, and in nothing
else: SQLite in memory. `second_modes` in pyproject.toml names it and the first ("sqlite-memory=sqlite-file").
A test that runs in the first mode runs in the second one too in one of four commits.

`--all` leaves nothing out. A run that was narrowed (by a path, -k, --row and the like) runs all it names.
"""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.rows import engine_mode, family_of, is_full_run

HOME = "sqlite"
"""The engine family on which the tests of every layer run."""
STATEFUL = "TIDEMILL_STATEFUL"
"""Of the environment: how long the contract's random commands run
(`tidemill.testing.contract.stateful.stateful`)."""
GIVEN = "tidemill_sample"
"""What the controlling process tells its test processes: the sample's name, or nothing for all."""


SECOND_MODE_TURNS = 4
"""In one of so many runs a test runs in its engine's second mode too."""


class Selection:
    """What one run leaves out."""

    def __init__(self, sample: str, folders: Iterable[str], second_modes: dict[str, str]) -> None:
        self._sample = sample
        self._second_modes = second_modes
        self._folders = tuple(f"{folder}/" for folder in folders)  # as they stand in the names of tests

    def pytest_report_header(self) -> str:
        return f"sample: {self._sample} (--sample {self._sample} takes it again, --all leaves nothing out)"

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[GIVEN] = self._sample

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        chosen = self._chosen(items)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = [item for item in items if item in chosen]

    def _chosen(self, items: list[pytest.Item]) -> set[pytest.Item]:
        """All that are not sampled, and of the others those whose turn it is."""
        chosen, groups = set(), defaultdict(list)
        names = {item.nodeid for item in items}
        for item in items:
            if self._runs_elsewhere(item) or self._runs_in_the_first_mode(item, names):
                continue
            if (count := sample_size(item)) is None:
                chosen.add(item)
            else:
                function, _, _ = item.nodeid.partition("[")
                groups[function, _foreign_mode(item), count].append(item)
        for (_, _, count), group in groups.items():
            chosen.update(sorted(group, key=lambda item: turn(self._sample, item.nodeid))[:count])
        return chosen

    def _runs_elsewhere(self, item: pytest.Item) -> bool:
        """Whether SQLite is enough for it."""
        return (
            _foreign_mode(item) is not None
            and item.get_closest_marker("every_engine") is None
            and item.nodeid.startswith(self._folders)
        )

    def _runs_in_the_first_mode(self, item: pytest.Item, names: set[str]) -> bool:
        """Whether that is enough for it this time."""
        mode = engine_mode(item) or ""
        first = self._second_modes.get(mode)
        if first is None or item.nodeid.replace(mode, first) not in names:
            return False
        return turn(self._sample, item.nodeid)[0] % SECOND_MODE_TURNS != 0


def turn(sample: str, test: str) -> bytes:
    """A sample takes those that come first."""
    return sha256(f"{sample} {test}".encode()).digest()


def sample_size(item: pytest.Item) -> int | None:
    """How many of its function's parameters a run takes; None: all of them."""
    mark = item.get_closest_marker("sampled")
    if mark is None and _foreign_mode(item) is not None:
        mark = item.get_closest_marker("every_engine")
    return mark.args[0] if mark is not None and mark.args else None


def _foreign_mode(item: pytest.Item) -> str | None:
    """The mode of an engine other than SQLite."""
    mode = engine_mode(item)
    return None if mode is None or family_of(mode) == HOME else mode


def commit(folder: Path) -> str:
    """The short hash of the commit that is checked out, "none" where there is none."""
    command = ("git", "rev-parse", "--short=10", "HEAD")
    try:
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return "none"
    return run.stdout.strip()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "protocol_only", "folders whose tests see only the protocol of an engine", type="args", default=[]
    )
    parser.addini(
        "second_modes",
        "modes that differ from another of the same engine in nothing but the connection: second=first",
        type="args",
        default=[],
    )
    parser.addoption("--all", action="store_true", help="every test on every engine, nothing sampled")
    parser.addoption("--sample", metavar="NAME", help="take the sample of another run")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "every_engine(count): on every engine; with a count, so many parameters on each but SQLite"
    )
    config.addinivalue_line("markers", "sampled(count): a run takes so many of the function's parameters")
    sample = _sample(config)
    if sample is not None:
        os.environ.setdefault(STATEFUL, "sample")
        if os.environ[STATEFUL] == "sample":
            os.environ.setdefault(f"{STATEFUL}_SEED", str(int.from_bytes(turn(sample, STATEFUL)[:4], "big")))
        second_modes = dict(pair.split("=") for pair in config.getini("second_modes"))
        selection = Selection(sample, config.getini("protocol_only"), second_modes)
        config.pluginmanager.register(selection, "tidemill-selection")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """For `tests.rows`, in every run: what another run may leave out is no proof."""
    for item in items:
        if sample_size(item) is not None:
            item.user_properties.append(("sampled", True))


def _sample(config: pytest.Config) -> str | None:
    """The name of the sample; None if nothing is left out."""
    if hasattr(config, "workerinput"):
        given: str | None = config.workerinput.get(GIVEN)
        return given
    if config.getoption("--all") or not is_full_run(config):
        return None
    chosen: str | None = config.getoption("--sample")
    return chosen or commit(config.rootpath)
