"""Opening a file: what is refused, with which words, and that a refusal changes nothing."""
# ruff: noqa: ASYNC221, ASYNC240  (nothing else runs on the loop)

import os
import socket
import subprocess
from pathlib import Path

import pytest

from tests.integration.sqlite.conftest import Mount
from tests.integration.sqlite.opened import connect
from tests.integration.sqlite.plain_file import beside, file_url, plain
from tidemill.engines.sqlite import url as urls
from tidemill.engines.sqlite.db.schema import MIGRATIONS
from tidemill.model.errors import BadUrl, EngineDamaged, EngineFull, NotOurs, SchemaTooNew, SchemaTooOld
from tidemill.model.queues.queue import QueueOptions
from tidemill.testing.contract.fixtures import Clock, a_job, configure, created

CODE = MIGRATIONS[-1].version


async def make(path: Path) -> None:
    """A database of ours, closed again."""
    await (await connect(file_url(path))).close()


async def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(BadUrl, match=r"folder .*nowhere does not exist; create it"):
        await connect(file_url(tmp_path / "nowhere" / "a.db"))
    assert os.listdir(tmp_path) == []


async def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    with pytest.raises(BadUrl, match="is a folder"):
        await connect(file_url(tmp_path))


async def test_a_file_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadUrl, match="does not exist"):
        await connect(file_url(tmp_path / "file" / "a.db"))


async def test_what_is_not_a_regular_file(path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(path))
        with pytest.raises(BadUrl, match="not a regular file"):
            await connect(file_url(path))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(BadUrl, match="not a regular file"):
        await connect(file_url(path))


@pytest.mark.parametrize("there", [True, False])
async def test_a_read_only_disk(mount: Mount, there: bool) -> None:
    disk = mount("size=2m")
    if there:
        await make(disk / "a.db")
    subprocess.run(("mount", "-o", "remount,ro", str(disk)), check=True)
    with pytest.raises(BadUrl, match=r"writable|no file can be made"):
        await connect(file_url(disk / "a.db"))


async def test_a_full_disk(mount: Mount) -> None:
    disk = mount("size=2m")
    fill(disk / "ballast")
    with pytest.raises(EngineFull, match="no space is left"):
        await connect(file_url(disk / "a.db"))
    (disk / "ballast").unlink()
    await make(disk / "a.db")


async def test_an_existing_file_on_a_full_disk(mount: Mount) -> None:
    disk = mount("size=2m")
    await make(disk / "a.db")
    fill(disk / "ballast")
    with pytest.raises(EngineFull, match="no space is left"):
        await connect(file_url(disk / "a.db"))
    (disk / "ballast").unlink()
    await make(disk / "a.db")


def fill(ballast: Path) -> None:
    """Leave no room on a disk."""
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(bytes(1 << 16)):
                pass
        except OSError:
            return


async def test_a_network_file_system(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = path.with_name("mounts")
    mounts.write_text(f"server:/x {path.parent} nfs4 rw 0 0\n")
    monkeypatch.setattr(urls, "_MOUNTS", mounts)
    with pytest.raises(BadUrl, match=r"network file system \(nfs4\).*local disk, or PostgreSQL or Redis"):
        await connect(file_url(path))
    assert not path.exists()


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite://host/a.db", "names a host"),
        ("sqlite:///a.db?colour=blue", "colour"),
        ("sqlite:///a.db?durability=maybe", "full, normal or off"),
        ("sqlite:///a.db?name=x", "in-memory"),
    ],
)
async def test_a_bad_url(url: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadUrl, match=says):
        await connect(url)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "data",
    [
        b"xy",
        b"just a text file\n" * 1_000,
        bytes(8_192),
        os.urandom(1 << 16),
        b"SQLite format 3\0" + b"?" * 5_000,
    ],
    ids=["two bytes", "text", "zeros", "noise", "the right beginning"],
)
async def test_a_file_that_is_no_database(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    with pytest.raises(NotOurs, match="not a SQLite database; give another path"):
        await connect(file_url(path))
    assert path.read_bytes() == data
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize(
    "script",
    ["CREATE TABLE person (name)", "PRAGMA user_version = 7", "PRAGMA application_id = 1196444487"],
    ids=["a table", "a version", "an application id"],
)
async def test_a_database_of_something_else(path: Path, script: str) -> None:
    with plain(path) as db:
        db.execute(script)
    data = path.read_bytes()
    with pytest.raises(NotOurs, match="something other than Tidemill; give another path"):
        await connect(file_url(path))
    assert path.read_bytes() == data


async def test_an_empty_file_is_as_good_as_none(path: Path, clock: Clock) -> None:
    path.touch()
    engine = await connect(file_url(path))
    assert created(await engine.jobs.enqueue([a_job()], now=clock.now)) == [True]
    await engine.close()


async def test_another_namespace(path: Path) -> None:
    await make(path)
    with pytest.raises(NotOurs, match=r"belongs to the namespace 'tidemill', not 'mine'.*file of its own"):
        await connect(file_url(path), namespace="mine")
    await make(path)


async def test_another_namespace_in_memory_is_another_place() -> None:
    engine = await connect("sqlite://?name=shared")
    other = await connect("sqlite://?name=shared", namespace="mine")
    try:
        await configure(engine, "q", QueueOptions())
        assert await other.queues.list() == []
    finally:
        await engine.close()
        await other.close()


async def test_a_newer_schema_that_says_we_are_too_old(path: Path) -> None:
    await make(path)
    with plain(path) as db:
        db.execute(f"PRAGMA user_version = {CODE + 2}")
        db.execute("UPDATE meta SET value = ? WHERE name = 'oldest_code'", (str(CODE + 1),))
    with pytest.raises(SchemaTooNew, match=f"version {CODE + 2}.*knows version {CODE + 1}.*upgrade it"):
        await connect(file_url(path))


async def test_a_newer_schema_that_still_admits_us(path: Path, clock: Clock) -> None:
    await make(path)
    with plain(path) as db:
        db.execute(f"PRAGMA user_version = {CODE + 2}")
    engine = await connect(file_url(path))
    assert created(await engine.jobs.enqueue([a_job()], now=clock.now)) == [True]
    await engine.close()
    with plain(path) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (CODE + 2,)


async def test_a_new_file_without_leave_to_migrate(path: Path) -> None:
    with pytest.raises(SchemaTooOld, match=f"needs schema version {CODE}.*has 0: run `tidemill migrate`"):
        await connect(file_url(path), migrate=False)
    if path.exists():
        with plain(path) as db:
            assert db.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,)
    await make(path)
    await (await connect(file_url(path), migrate=False)).close()


@pytest.mark.parametrize(
    "script",
    [
        "DELETE FROM meta WHERE name = 'oldest_code'",
        "DELETE FROM meta WHERE name = 'namespace'",
        "UPDATE meta SET value = 'x' WHERE name = 'oldest_code'",
    ],
)
async def test_our_file_without_what_it_says_of_itself(path: Path, script: str) -> None:
    await make(path)
    with plain(path) as db:
        db.execute(script)
    with pytest.raises(EngineDamaged, match="restore a backup"):
        await connect(file_url(path))


async def test_a_refusal_leaves_no_lock_behind(path: Path) -> None:
    await make(path)
    with pytest.raises(NotOurs):
        await connect(file_url(path), namespace="mine")
    with plain(path) as db:
        db.execute("BEGIN EXCLUSIVE")
        db.execute("ROLLBACK")
    assert not beside(path, "-wal").exists()
