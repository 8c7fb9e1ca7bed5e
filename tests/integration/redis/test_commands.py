"""No command is newer than the oldest server that we promise to work with."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from tests.integration.redis.conftest import Command
from tidemill.engines import redis
from tidemill.engines.redis.db.schema import OLDEST_SERVER

_IN_LUA = re.compile(r"\b(?:redis\.call|redis\.pcall|call|S\.put)\(\s*'([A-Z]+)'")
_IN_PYTHON = re.compile(r"""\b(?:command|send_command|ask|_ask|_checked)\(\s*"([A-Z]+)\"""")
_QUOTED = re.compile(r"'([A-Z]{3,})'")


def sources() -> dict[str, str]:
    root = files(redis)
    lua = {file.name: file.read_text("utf-8") for file in root.joinpath("lua").iterdir()}
    python = {file.name: file.read_text("utf-8") for file in root.iterdir() if file.name.endswith(".py")}
    return {**lua, **python}


def used() -> set[str]:
    """Every command that is named where one is sent, and every word that may be one."""
    found: set[str] = {"EVALSHA", "EVAL", "WAIT", "AUTH", "SELECT", "CLIENT"}
    for name, text in sources().items():
        pattern = _IN_LUA if Path(name).suffix == ".lua" else _IN_PYTHON
        found |= set(pattern.findall(text))
        if Path(name).suffix == ".lua":  # a command may stand in a variable
            code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
            found |= set(_QUOTED.findall(code))
    return found


def since(command: Command, name: str) -> tuple[int, ...] | None:
    """The version that brought it; None: not a command."""
    answer = command("COMMAND", "DOCS", name).decode()
    told = re.search(r"\r\nsince\r\n\$\d+\r\n([\d.]+)\r\n", answer)
    return None if told is None else tuple(int(part) for part in told[1].split("."))


def test_every_command_is_old_enough(command: Command) -> None:
    if since(command, "GET") is None:
        pytest.skip("this server does not tell since when it has a command")
    versions = {name: found for name in used() if (found := since(command, name)) is not None}
    assert len(versions) > 30
    assert {"HSET", "ZADD", "PUBLISH", "SUBSCRIBE", "WAIT", "INFO", "TIME"} <= set(versions)
    newer = {name: found for name, found in versions.items() if found > (*OLDEST_SERVER, 0)}
    assert newer == {}


def test_the_list_would_find_a_newer_one(command: Command) -> None:
    if since(command, "GET") is None:
        pytest.skip("this server does not tell since when it has a command")
    assert since(command, "ZMPOP") == (7, 0, 0)
    assert _QUOTED.findall("call('ZMPOP', 1)") == ["ZMPOP"]
