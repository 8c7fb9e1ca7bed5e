"""Files, disks and a clock for the tests of the SQLite engine's faults."""

import os
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.sqlite.opened import close_all
from tests.leash import label
from tidemill.testing.contract.fixtures import Clock, clock

__all__ = ["Clock", "clock"]

Mount = Callable[[str], Path]


@pytest.fixture(autouse=True)
async def _closed() -> AsyncIterator[None]:
    yield
    await close_all()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database of a test is."""
    return tmp_path / "tidemill.db"


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mounts a file system in memory with the options given; unmounted at the end."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    mounted: list[Path] = []

    def mount_one(options: str) -> Path:
        folder = tmp_path / f"disk-{len(mounted)}"
        folder.mkdir()
        command = ("mount", "-t", "tmpfs", "-o", options, label(), str(folder))
        run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        if run.returncode:
            pytest.fail(f"root, and yet: {run.stderr}")
        mounted.append(folder)
        return folder

    yield mount_one
    for folder in mounted:
        subprocess.run(("umount", "--lazy", str(folder)), check=True, timeout=60)
