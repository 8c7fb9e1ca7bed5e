"""No command is newer than the oldest server that we promise to work with."""

import re
from pathlib import Path

import pytest

from tests.integration.redis.conftest import Command
from tidemill.engines import redis
from tidemill.engines.redis.db.schema import OLDEST_SERVER

_IN_LUA = re.compile(r"\b(?:redis\.call|redis\.pcall|call|S\.put)\(\s*'([A-Z]+)'")
_IN_PYTHON = re.compile(r"""\b(?:command|send_command|ask|_request|_checked)\(\s*"([A-Z]+)\"""")
_QUOTED = re.compile(r"'([A-Z]{3,})'")


def sources() -> dict[str, str]:
    root = Path(redis.__file__).parent
    files = [file for file in root.rglob("*") if file.suffix in (".lua", ".py")]
    return {file.relative_to(root).as_posix(): file.read_text("utf-8") for file in files}


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
    found = re.search(r"\r\nsince\r\n\$\d+\r\n([\d.]+)\r\n", answer)
    return None if found is None else tuple(int(part) for part in found[1].split("."))


def test_every_command_is_old_enough(command: Command) -> None:
    if since(command, "GET") is None:
        pytest.skip("this server does not say since when it has a command")
    versions = {name: found for name in used() if (found := since(command, name)) is not None}
    assert len(versions) > 30
    assert {"HSET", "ZADD", "PUBLISH", "SUBSCRIBE", "WAIT", "INFO", "TIME"} <= set(versions)
    newer = {name: found for name, found in versions.items() if found > (*OLDEST_SERVER, 0)}
    assert newer == {}


def test_the_list_would_find_a_newer_one(command: Command) -> None:
    if since(command, "GET") is None:
        pytest.skip("this server does not say since when it has a command")
    assert since(command, "ZMPOP") == (7, 0, 0)
    assert _QUOTED.findall("call('ZMPOP', 1)") == ["ZMPOP"]
