"""The rooms of the Lua files: operations in theirs, fragments in one of their own."""

import re

from tidemill.engines.redis.db.scripts import lua_files, script, source

INCLUDED = re.compile(r"^--# include (\w+)$", re.MULTILINE)
KINDS = ("--# reads\n", "--# adds\n", "--# goes on\n")


def room_of(name: str) -> str:
    return str(lua_files()[name]).replace("\\", "/").split("/")[-2]


def test_fragments_are_what_is_included_and_nothing_else_is() -> None:
    included = {name for each in lua_files() for name in INCLUDED.findall(source(each))}
    assert included == {name for name in lua_files() if room_of(name) == "fragments"}


def test_every_other_file_is_an_operation() -> None:
    operations = {name for name in lua_files() if source(name).startswith(KINDS)}
    assert operations == {name for name in lua_files() if room_of(name) != "fragments"}


def test_only_the_room_read_reads() -> None:
    reading = {name for name in lua_files() if source(name).startswith("--# reads\n")}
    assert reading == {name for name in lua_files() if room_of(name) == "read"}
    assert not any(script(name).writes for name in reading)


def test_every_operation_says_what_it_takes_and_answers() -> None:
    for name in lua_files():
        legend = source(name).partition("\n\n")[0]
        assert room_of(name) == "fragments" or ("Takes: " in legend and "Answers: " in legend), name
