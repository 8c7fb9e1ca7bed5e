"""The Lua files. A file may begin with lines `--# include name`: those fragments come first, each once."""

import hashlib
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_INCLUDE = "--# include "


class Script(NamedTuple):
    """One operation as the server knows it."""

    name: str
    text: bytes
    sha: bytes
    """Of the text: so a script carries its version by its content."""


@cache
def script(name: str) -> Script:
    """The script of an operation, with everything that it includes."""
    parts: dict[str, str] = {}
    _collect(name, parts)
    text = "\n".join(parts.values()).encode()
    return Script(name, text, hashlib.sha1(text, usedforsecurity=False).hexdigest().encode())


def _collect(name: str, parts: dict[str, str]) -> None:
    if name in parts:
        return
    own = []
    for line in (files(__package__) / "lua" / f"{name}.lua").read_text("utf-8").splitlines():
        if line.startswith(_INCLUDE):
            _collect(line.removeprefix(_INCLUDE).strip(), parts)
        else:
            own.append(line)
    parts[name] = f"-- {name}\n" + "\n".join(own)
