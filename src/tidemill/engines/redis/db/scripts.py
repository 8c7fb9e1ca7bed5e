"""The Lua files. A file may begin with lines `--# include name`: those fragments come first, each once.

An operation says what it does when the server has no memory left. Redis refuses a script's first write if
that needs memory, and none after it: without a word of ours it would depend on the job what is refused.

- `--# reads`: nothing is written.
- `--# adds`: refused before it begins. (SETRANGE of nothing changes nothing, but a full server refuses it.)
- `--# goes on`: done all the same: work that runs is to finish, what waits is to be worked off, workers are
  to start (they publish what they know), operators to pause or to keep less. Since Redis 7 a script says so
  with a flag. For an older one it begins with a write that needs no memory: DEL of a key that nobody has
  changes nothing, and what follows is not refused. (Its file gets an empty transaction of 29 bytes.)

A fragment that begins with `--# at need` is one function of the script, which is called when one of the
functions that it puts into `S` is asked for: what it defines costs nothing where it is not used. (Lua makes
its functions anew in every call: all 80 of an enqueue took half its time, 45 us, and 110 us on a server that
had been idle.) Whatever others use of such a fragment is in `S`; its own locals are its own.
"""

import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_MARK = "--# "
_INCLUDE = "include "
_AT_NEED = "at need"
_DEFINED = re.compile(r"^function S\.(\w+)", re.MULTILINE)
_PROBE = "redis.call('SETRANGE', KEYS[1] .. 'full', 0, '')\n"
_GO_ON = "#!lua flags=allow-oom\n"
_GO_ON_BEFORE_7 = "redis.call('DEL', KEYS[1] .. 'full')\n"


class LuaScript(NamedTuple):
    """One operation as the server knows it."""

    name: str
    text: bytes
    sha: bytes
    """Of the text: so a script carries its version by its content."""
    writes: bool


@cache
def script(name: str, *, flags: bool = True) -> LuaScript:
    """The script of an operation with everything that it includes; `flags`: the server reads them."""
    parts: dict[str, str] = {}
    kind = _collect(name, parts)
    first = {"reads": "", "adds": _PROBE, "goes on": _GO_ON if flags else _GO_ON_BEFORE_7, None: ""}[kind]
    text = (first + "\n".join(_laid_out(parts))).encode()
    sha = hashlib.sha1(text, usedforsecurity=False).hexdigest().encode()
    return LuaScript(name, text, sha, writes=kind in ("adds", "goes on"))


def load_all(*, flags: bool) -> None:
    """Read every file now: later there may be no descriptor left, or a newer version in its place."""
    for file in (files("tidemill.engines.redis") / "lua").iterdir():
        script(file.name.removesuffix(".lua"), flags=flags)


def source(name: str) -> str:
    """The text of one file."""
    return (files("tidemill.engines.redis") / "lua" / f"{name}.lua").read_text("utf-8")


def _laid_out(parts: dict[str, str]) -> list[str]:
    """The fragments that are there at once, those at need, and the operation."""
    *fragments, operation = parts
    at_need = [name for name in fragments if source(name).startswith(f"{_MARK}{_AT_NEED}\n")]
    laid_out = [parts[name] for name in fragments if name not in at_need]
    if at_need:
        laid_out += [f"local function need_{name}()\n{parts[name]}\nend" for name in at_need]
        asked = [
            f"if {' or '.join(f'name == {found!r}' for found in _DEFINED.findall(parts[name]))} then "
            f"need_{name}()"
            for name in at_need
        ]
        laid_out.append(
            "setmetatable(S, { __index = function(_, name)\n"
            + "\nelse".join(asked)
            + "\nend\nreturn rawget(S, name)\nend })"
        )
    return [*laid_out, parts[operation]]


def _collect(name: str, parts: dict[str, str]) -> str | None:
    """Add a file and what it includes; what it says of itself."""
    own, kind = [f"-- {name}"], None
    for line in source(name).splitlines():
        said = line.removeprefix(_MARK) if line.startswith(_MARK) else ""
        if said.startswith(_INCLUDE):
            included = said.removeprefix(_INCLUDE).strip()
            if included not in parts:
                _collect(included, parts)
        elif said and said != _AT_NEED:
            kind = said
        else:
            own.append(line)
    parts[name] = "\n".join(own)
    return kind
