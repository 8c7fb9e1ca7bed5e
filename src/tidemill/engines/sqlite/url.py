"""Where a SQLite engine lives: its URL, taken apart and checked.

    sqlite:///relative.db      sqlite:////absolute/path.db      sqlite://  (in memory)

Options in the query: `durability` = full (default: every commit reaches the disk), normal (a power
cut may undo the last commits, never damage) or off (tests); `lock_timeout` in seconds: how long a
call waits for another process's write lock; `name`: in memory only, engines of one process that
give the same name share one database.
"""

import os
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

import msgspec

from tidemill.engine.shared.url_options import choice, read
from tidemill.model.errors import BadUrl

Durability = Literal["full", "normal", "off"]
DURABILITIES: tuple[Durability, ...] = ("full", "normal", "off")

_OPTIONS = ("durability", "lock_timeout", "name")

_NETWORK = ("nfs", "cifs", "smb", "afs", "9p", "ceph", "gluster", "lustre", "fuse.sshfs", "fuse.rclone")
_MOUNTS = Path("/proc/self/mounts")


class SqliteUrl(msgspec.Struct, frozen=True, kw_only=True):
    """One database."""

    path: str | None
    """None: in memory."""
    name: str = ""
    durability: Durability = "full"
    lock_timeout: float = 30.0

    def __str__(self) -> str:
        if self.path is None:
            return f"sqlite://?name={self.name}" if self.name else "sqlite://"
        return f"sqlite:///{self.path}"


def parse_url(url: str) -> SqliteUrl:
    """The URL, taken apart and checked, or `BadUrl`."""
    parts = urlsplit(url)
    if parts.netloc:
        raise BadUrl(
            f"{url!r} names a host; a SQLite URL has three slashes before a relative path and four "
            "before an absolute one: sqlite:///tidemill.db"
        )
    if "#" in url:
        raise BadUrl(f"{url!r} contains a #, which ends a URL's path; in a path it is written %23")
    options = read(parts.query, _OPTIONS, "SQLite", _unreadable)
    path = unquote(parts.path).removeprefix("/")
    if "\0" in path:
        raise BadUrl(f"{url!r} names a path with a zero byte, which no file can have; give another path")
    if path.startswith(":memory:"):
        raise BadUrl("an in-memory database is written sqlite:// (or sqlite://?name=x to share it)")
    parsed = SqliteUrl(
        path=os.path.abspath(path) if path else None,
        name=options.get("name", ""),
        durability=choice(options, "durability", DURABILITIES, "full"),
        lock_timeout=_seconds(options.get("lock_timeout", "30")),
    )
    if parsed.path is not None:
        if parsed.name:
            raise BadUrl("name= is for in-memory databases; a file has its path")
        _check_directory(Path(os.path.realpath(parsed.path)))
    return parsed


def _unreadable() -> BadUrl:
    return BadUrl(f"the options of a SQLite URL are {', '.join(_OPTIONS)}; in a path a ? is written %3F")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= 86_400:
        raise BadUrl(f"lock_timeout is a number of seconds from 0 to 86400, not {text!r}")
    return seconds


def _check_directory(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        raise BadUrl(f"the folder {folder} does not exist; create it, or give another path")
    if path.is_dir():
        raise BadUrl(f"{path} is a folder; give the path of a file")
    if path.exists() and not path.is_file():
        raise BadUrl(f"{path} is not a regular file; give another path")
    if not path.exists() and not os.access(folder, os.W_OK):
        raise BadUrl(f"no file can be made in {folder}; give write permission, or another path")
    if path.exists() and not (os.access(path, os.R_OK | os.W_OK) and os.access(folder, os.W_OK)):
        raise BadUrl(f"{path} and its folder must be readable and writable for this user")
    kind = file_system_of(folder, _MOUNTS.read_text() if _MOUNTS.exists() else "")
    if kind.startswith(_NETWORK):
        raise BadUrl(
            f"{path} lies on a network file system ({kind}), where SQLite's locks cannot be trusted; "
            "use a local disk, or PostgreSQL or Redis for several hosts"
        )


def file_system_of(folder: Path, mounts: str) -> str:
    """The type of the file system under a folder, by the text of /proc/self/mounts ("" if unknown)."""
    where, best, kind = str(folder.resolve()), "", ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        mount = fields[1].replace("\\040", " ")
        inside = where == mount or where.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, fields[2]
    return kind
