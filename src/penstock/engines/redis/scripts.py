"""The Lua files. A file may begin with lines `--# include name`: those fragments come first, each once.

An operation says what it does when the server has no memory left, because a script is not rolled back and
Redis refuses only commands that need memory: one that had begun with a removal would stop in the middle.

- `--# reads`: nothing is written.
- `--# adds`: refused before it begins. (SETRANGE of nothing changes nothing, but a full server refuses it.)
- `--# goes on`: done all the same: work that runs is to finish, what waits is to be worked off, workers are
  to start (they publish what they know), operators to pause or to keep less. Only since Redis 7 can a script
  say so; before that it is refused as well.
"""

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_MARK = "--# "
_INCLUDE = "include "
_PROBE = "redis.call('SETRANGE', KEYS[1] .. 'full', 0, '')\n"
_GO_ON = "#!lua flags=allow-oom\n"


class Script(NamedTuple):
    """One operation as the server knows it."""

    name: str
    text: bytes
    sha: bytes
    """Of the text: so a script carries its version by its content."""
    writes: bool


@cache
def script(name: str, *, flags: bool = True) -> Script:
    """The script of an operation with everything that it includes; `flags`: the server reads them."""
    parts: dict[str, str] = {}
    kind = _collect(name, parts)
    first = {"reads": "", "adds": _PROBE, "goes on": _GO_ON if flags else _PROBE, None: ""}[kind]
    text = (first + "\n".join(parts.values())).encode()
    sha = hashlib.sha1(text, usedforsecurity=False).hexdigest().encode()
    return Script(name, text, sha, writes=kind in ("adds", "goes on"))


def load_all(*, flags: bool) -> None:
    """Read every file now: later there may be no descriptor left, or a newer version in its place."""
    for file in (files(__package__) / "lua").iterdir():
        script(file.name.removesuffix(".lua"), flags=flags)


def source(name: str) -> str:
    """The text of one file."""
    return (files(__package__) / "lua" / f"{name}.lua").read_text("utf-8")


def _collect(name: str, parts: dict[str, str]) -> str | None:
    """Add a file and what it includes; what it says of itself."""
    own, kind = [f"-- {name}"], None
    for line in source(name).splitlines():
        said = line.removeprefix(_MARK) if line.startswith(_MARK) else ""
        if said.startswith(_INCLUDE):
            included = said.removeprefix(_INCLUDE).strip()
            if included not in parts:
                _collect(included, parts)
        elif said:
            kind = said
        else:
            own.append(line)
    parts[name] = "\n".join(own)
    return kind
