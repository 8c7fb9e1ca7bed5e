"""Where a SQLite engine lives: URLs taken apart, and what lies under a folder."""

import os
from pathlib import Path

import pytest

from tidemill.engines.sqlite import url as urls
from tidemill.engines.sqlite.url import file_system_of, parse_url
from tidemill.model.errors import BadUrl

MOUNTS = """\
/dev/vda / ext4 rw 0 0
server:/srv /srv nfs4 rw 0 0
/dev/vdb /srv/local xfs rw 0 0
user@host: /home/ann/far\\040away fuse.sshfs rw 0 0
tmpfs /over tmpfs rw 0 0
server:/over /over nfs rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "ext4"),
        ("/var/lib", "ext4"),
        ("/srv", "nfs4"),
        ("/srv/jobs/today", "nfs4"),
        ("/srvice", "ext4"),
        ("/srv/local", "xfs"),
        ("/srv/local/jobs", "xfs"),
        ("/home/ann/far away/jobs", "fuse.sshfs"),
        ("/over/it", "nfs"),
    ],
)
def test_the_innermost_and_latest_mount_counts(folder: str, kind: str) -> None:
    assert file_system_of(Path(folder), MOUNTS) == kind


def test_without_a_table_of_mounts_nothing_is_known() -> None:
    assert file_system_of(Path("/srv"), "") == ""


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "lustre"])
def test_network_file_systems_are_refused(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mounts"
    table.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/x {tmp_path} {kind} rw 0 0\n")
    monkeypatch.setattr(urls, "_MOUNTS", table)
    with pytest.raises(BadUrl, match=f"network file system.*{kind}"):
        parse_url(f"sqlite:///{tmp_path}/a.db")


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "apfs"])
def test_local_file_systems_are_fine(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = tmp_path / "mounts"
    table.write_text(f"server:/ / nfs rw 0 0\n/dev/vda {tmp_path} {kind} rw 0 0\n")
    monkeypatch.setattr(urls, "_MOUNTS", table)
    assert parse_url(f"sqlite:///{tmp_path}/a.db").path == f"{tmp_path}/a.db"


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_judged_by_where_it_leads(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = tmp_path / "far"
    far.mkdir()
    if there:
        (far / "a.db").touch()
    (tmp_path / "link.db").symlink_to(far / "a.db")
    table = tmp_path / "mounts"
    table.write_text(f"/dev/vda / ext4 rw 0 0\nserver:/x {far} nfs rw 0 0\n")
    monkeypatch.setattr(urls, "_MOUNTS", table)
    with pytest.raises(BadUrl, match="network"):
        parse_url(f"sqlite:///{tmp_path}/link.db")


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite://host/a.db", "names a host"),
        ("sqlite://a.db", "names a host"),
        ("sqlite:///a.db?colour=blue", "colour"),
        ("sqlite:///a.db?durability=maybe", "full, normal or off"),
        ("sqlite:///a.db?durability=", "full, normal or off"),
        ("sqlite:///a.db?lock_timeout=-1", "lock_timeout"),
        ("sqlite:///a.db?lock_timeout=nan", "lock_timeout"),
        ("sqlite:///a.db?lock_timeout=soon", "lock_timeout"),
        ("sqlite:///a.db?name=x", "in-memory"),
        ("sqlite:///:memory:", "sqlite://"),
        ("sqlite:///a#1.db", "#"),
        ("sqlite:///a%00.db", "path"),
    ],
)
def test_a_bad_url_is_refused(url: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadUrl, match=says):
        parse_url(url)
    assert os.listdir(tmp_path) == []


def test_three_slashes_are_relative_and_four_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_url("sqlite:///a.db").path == str(tmp_path / "a.db")
    assert parse_url(f"sqlite:///{tmp_path}/a.db").path == str(tmp_path / "a.db")
    assert parse_url("sqlite:///a%23%20b.db").path == str(tmp_path / "a# b.db")
    assert parse_url("sqlite://").path is None


def test_options_are_read() -> None:
    found = parse_url("sqlite://?durability=off&lock_timeout=1.5&name=x")
    assert (found.durability, found.lock_timeout, found.name) == ("off", 1.5, "x")
