"""A closed engine, or one that could not be opened, leaves nothing behind."""

import os
import threading
from pathlib import Path

import pytest

from tests.integration.sqlite.opened import connect
from tests.integration.sqlite.plain_file import beside, file_url
from tests.integration.sqlite.signal_folder import signal_folder
from tidemill.engines.sqlite.db import store
from tidemill.model.errors import EngineUnavailable, NotOurs
from tidemill.testing.contract.fixtures import Clock, a_job, listed


def threads(path: object) -> list[str]:
    """Of engines on a file."""
    names = [thread.name for thread in threading.enumerate()]
    return [name for name in names if name.startswith("tidemill-") and str(path) in name]


def open_files(path: Path) -> list[str]:
    """File descriptors of this process on a database's files."""
    found = []
    for fd in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{fd}")
        except FileNotFoundError:  # the one that listed the folder
            continue
        if target.startswith(str(path)):
            found.append(target)
    return found


def sockets() -> int:
    """How many sockets this process has."""
    count = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
        except FileNotFoundError:
            continue
    return count


async def test_a_closed_engine_leaves_nothing(path: Path, clock: Clock) -> None:
    before = sockets()
    engine = await connect(file_url(path))
    await engine.jobs.enqueue([a_job()], now=clock.now)
    await listed(engine)
    closed, left_open = await engine.signals.subscribe("x"), await engine.signals.subscribe("y")
    assert len(threads(path)) == 2
    assert len(os.listdir(signal_folder(path))) == 2
    assert open_files(path)
    assert sockets() > before
    await closed.close()
    assert len(os.listdir(signal_folder(path))) == 1
    await engine.close()
    assert await left_open.next(5) is None
    assert threads(path) == []
    assert os.listdir(signal_folder(path)) == []
    assert open_files(path) == []
    assert sockets() == before
    assert not beside(path, "-wal").exists()


async def test_in_memory_too() -> None:
    before = sockets()
    one, other = await connect("sqlite://?name=leak"), await connect("sqlite://?name=leak")
    await one.signals.subscribe("x")
    assert len(threads("name=leak")) == 1
    await one.close()
    assert len(threads("name=leak")) == 1
    await other.close()
    assert threads("name=leak") == []
    assert sockets() == before


async def test_a_refused_opening_leaves_nothing(path: Path) -> None:
    await (await connect(file_url(path))).close()
    before = sockets()
    with pytest.raises(NotOurs):
        await connect(file_url(path), namespace="mine")
    assert threads(path) == []
    assert open_files(path) == []
    assert sockets() == before


async def test_an_opening_that_fails_half_way_leaves_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer has its connection, the reader gets none."""

    def no_more(self: store.Reader) -> None:
        raise EngineUnavailable("too many open files")

    monkeypatch.setattr(store.Reader, "_open", no_more)
    before = sockets()
    with pytest.raises(EngineUnavailable, match="too many"):
        await connect(file_url(path))
    assert threads(path) == []
    assert open_files(path) == []
    assert sockets() == before
