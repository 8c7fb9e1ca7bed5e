"""No command is newer than the oldest server that we promise to work with."""

import re
from pathlib import Path

from tests.integration.redis.conftest import Command
from tidemill.engines import redis
from tidemill.engines.redis.db.schema import OLDEST_SERVER

_IN_LUA = re.compile(r"\b(?:redis\.call|redis\.pcall|call|S\.put)\(\s*'([A-Z]+)'")
_IN_PYTHON = re.compile(r"""\b(?:command|send_command|ask|_request|_checked)\(\s*"([A-Z]+)\"""")
_QUOTED = re.compile(r"'([A-Z]{3,})'")

SINCE = {
    "1.0.0": "AUTH DEL EXISTS GET INFO LINDEX LLEN LPOP LRANGE LSET PING RPUSH SADD SCARD SELECT SET "
    "SMEMBERS SRANDMEMBER SREM TYPE",
    "1.0.5": "ZRANGEBYSCORE",
    "1.2.0": "ZADD ZCARD ZRANGE ZREM ZREMRANGEBYSCORE ZSCORE",
    "2.0.0": "CONFIG HDEL HEXISTS HGET HGETALL HINCRBY HKEYS HLEN HMGET HSET HSETNX HVALS PUBLISH "
    "SUBSCRIBE ZCOUNT ZREMRANGEBYRANK",
    "2.4.0": "CLIENT",
    "2.6.0": "EVAL EVALSHA TIME",
    "2.8.0": "SCAN",
    "2.8.9": "ZRANGEBYLEX",
    "3.0.0": "WAIT",
    "4.0.0": "MEMORY UNLINK",
}
"""The version of Redis that brought each command, as the documentation of Redis says."""
NO_COMMANDS = {"BADCLAIMANT", "LIMIT", "UNKNOWNQUEUE", "UNKNOWNTASK", "USAGE", "WITHSCORES"}
"""Other words that stand in quotes."""


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


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def known() -> dict[str, tuple[int, ...]]:
    return {name: numbers(version) for version, names in SINCE.items() for name in names.split()}


def said(command: Command, name: str) -> tuple[int, ...] | None:
    """The version that brought it, in the words of the server; None: an older server, which does not say."""
    answer = command("COMMAND", "DOCS", name).decode()
    found = re.search(r"\r\nsince\r\n\$\d+\r\n([\d.]+)\r\n", answer)
    return None if found is None else numbers(found[1])


def test_every_command_is_old_enough() -> None:
    assert used() - set(known()) - NO_COMMANDS == set(), "look up since when Redis has these"
    assert {name for name, version in known().items() if version > (*OLDEST_SERVER, 0)} == set()


def test_the_server_says_the_same(command: Command) -> None:
    missing = [
        name for name in known() if command("COMMAND", "INFO", name).startswith((b"*1\r\n*-1", b"*1\r\n$-1"))
    ]
    assert missing == []
    newer = [name for name in known() if (said(command, name) or (0,)) > (*OLDEST_SERVER, 0)]
    assert newer == []


def test_a_newer_one_would_be_found(command: Command) -> None:
    (newer,) = _QUOTED.findall("call('ZMPOP', 1)")
    assert newer not in known()
    assert said(command, newer) in (None, (7, 0, 0))
