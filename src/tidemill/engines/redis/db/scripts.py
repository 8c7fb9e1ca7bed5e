"""The Lua files, found by name, each with the fragments that it includes.

A file may begin with lines `--# include name`: those fragments come first, each once.

The files stand in rooms: `lua/jobs`, `lua/cluster` and `lua/read` have one file for each operation, and
`lua/fragments` has what is only included. A name is unique over all rooms, and callers and includes use the
name alone.

An operation states what it does when the server has no memory left. Redis refuses the first write of a script
if that write needs memory, but no later one. Without a statement, it would depend on the job what is refused.

- `--# reads`: the operation writes nothing.
- `--# adds`: it is refused before it begins. (SETRANGE of nothing changes nothing, but a full server refuses
  it.)
- `--# goes on`: it is done all the same. Running jobs have to finish, waiting jobs have to be worked off,
  workers have to start (they publish their tasks), and operators have to be able to pause a queue or to keep
  less. Since Redis 7 a script states this with a flag. For an older server the script begins with a write
  that needs no memory: DEL of a key that does not exist changes nothing, and the writes after it are not
  refused. (The append-only file gets an empty transaction of 29 bytes.)

A fragment that begins with `--# at need` becomes one function of the script. That function is called when a
function that the fragment puts into `S` is first used, so an unused fragment costs nothing. (Lua makes its
functions anew in every call: all 80 of an enqueue took half its time, 45 us, and 110 us on a server that had
been idle.) Other files use such a fragment through `S` only; its locals are its own.
"""

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tidemill.engine.files import folder_of

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
    """The hash of the text: a changed script has another one."""
    writes: bool


@cache
def script(name: str, *, flags: bool = True) -> LuaScript:
    """The script of an operation, with its includes. `flags`: whether the server reads flags of a script."""
    parts: dict[str, str] = {}
    kind = _collect(name, parts)
    first = {"reads": "", "adds": _PROBE, "goes on": _GO_ON if flags else _GO_ON_BEFORE_7, None: ""}[kind]
    text = (first + "\n".join(_laid_out(parts))).encode()
    sha = hashlib.sha1(text, usedforsecurity=False).hexdigest().encode()
    return LuaScript(name, text, sha, writes=kind in ("adds", "goes on"))


def load_all(*, flags: bool) -> None:
    """Read every file now. Later no descriptor may be left, or a deploy may have replaced the file."""
    for name in lua_files():
        script(name, flags=flags)


@cache
def lua_files() -> dict[str, Path]:
    """Every file of every room, by its name."""
    found: dict[str, Path] = {}
    for room in (folder_of("tidemill.engines.redis") / "lua").iterdir():
        for file in room.iterdir():
            name = file.name.removesuffix(".lua")
            assert name not in found, f"two Lua files are named {name}: an include would be ambiguous"
            found[name] = file
    return found


def source(name: str) -> str:
    """The text of one file."""
    return lua_files()[name].read_text("utf-8")


def _laid_out(parts: dict[str, str]) -> list[str]:
    """The texts in the order of the script: fragments that run at once, those at need, the operation."""
    *fragments, operation = parts
    at_need = [name for name in fragments if source(name).startswith(f"{_MARK}{_AT_NEED}\n")]
    laid_out = [parts[name] for name in fragments if name not in at_need]
    if at_need:
        laid_out += [f"local function need_{name}()\n{parts[name]}\nend" for name in at_need]
        cases = [
            f"if {' or '.join(f'name == {found!r}' for found in _DEFINED.findall(parts[name]))} then "
            f"need_{name}()"
            for name in at_need
        ]
        laid_out.append(
            "setmetatable(S, { __index = function(_, name)\n"
            + "\nelse".join(cases)
            + "\nend\nreturn rawget(S, name)\nend })"
        )
    return [*laid_out, parts[operation]]


def _collect(name: str, parts: dict[str, str]) -> str | None:
    """Add a file and its includes to `parts`. Returns its kind (`reads`, `adds`, `goes on`), or None for a
    fragment."""
    own, kind = [f"-- {name}"], None
    for line in source(name).splitlines():
        mark = line.removeprefix(_MARK) if line.startswith(_MARK) else ""
        if mark.startswith(_INCLUDE):
            included = mark.removeprefix(_INCLUDE).strip()
            if included not in parts:
                _collect(included, parts)
        elif mark and mark != _AT_NEED:
            kind = mark
        else:
            own.append(line)
    parts[name] = "\n".join(own)
    return kind
