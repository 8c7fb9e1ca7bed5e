"""The data folder that tests copy for each server of theirs."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.servers.fixtures import server_or_skip


def other_disk(folder: Path) -> Path:
    """A folder on another file system than this one; a skip where there is none."""
    for place in (Path("/dev/shm"), Path("/var/tmp")):
        if place.is_dir() and os.access(place, os.W_OK) and place.stat().st_dev != folder.stat().st_dev:
            return place
    pytest.skip("needs a second file system")


@pytest.fixture
def empty(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for temporary files on a machine where no test has run before."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)  # the server runs as somebody else
        with monkeypatch.context() as patch:
            patch.setattr(tempfile, "tempdir", folder)
            yield Path(folder)


def test_it_is_made_also_for_a_server_on_another_disk(empty: Path) -> None:
    server = server_or_skip(start=False, disk=other_disk(empty))
    try:
        made = server._untouched()
        assert made.parent == empty
        assert (made / "PG_VERSION").exists()
        assert list(empty.iterdir()) == [made]
        assert server._untouched() == made
    finally:
        server.close()
