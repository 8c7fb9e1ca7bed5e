"""How a bug is planted in an engine, for its whole run of the contract suite.

A module of planted bugs is a pytest plugin: with `TIDEMILL_PLANT=name` in the environment that bug is
planted before anything else is set up. `test_planted_bugs` runs the contract suite under each and expects
it to fail. Shipped code has no switch for any of them.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeAlias

import pytest

Patch: TypeAlias = Callable[[pytest.MonkeyPatch], None]


class Plant(NamedTuple):
    """One bug."""

    checks: tuple[str, ...]
    """What must find it: modules of tests ("settle"), better single tests of them ("settle::test_...")."""
    patch: Patch


class Plants(Mapping[str, Plant]):
    """The planted bugs of one engine, by name."""

    def __init__(self) -> None:
        self._known: dict[str, Plant] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def __getitem__(self, name: str) -> Plant:
        return self._known[name]

    def plant(self, *checks: str) -> Callable[[Patch], None]:
        """The decorator of a patch: what must find it."""

        def add(patch: Patch) -> None:
            self._known[patch.__name__] = Plant(checks, patch)

        return add

    def configure(self, config: pytest.Config) -> None:
        """The plugin's `pytest_configure`."""
        name = os.environ.get("TIDEMILL_PLANT")
        if name:
            patch = pytest.MonkeyPatch()
            self[name].patch(patch)
            config.add_cleanup(patch.undo)
