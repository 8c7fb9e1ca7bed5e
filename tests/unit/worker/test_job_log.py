"""The job's own log: what its format makes of a line."""

from typing import Any

import pytest

from tidemill.task.current import JobLog


class Notes:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def progress(self, value: bytes) -> None: ...

    def log(self, level: str, message: str) -> None:
        self.lines.append((level, message))


class Unshowable:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("message", "args", "line"),
    [
        ("100 %", (), "100 %"),
        ("%s of %d", ("two", 3), "two of 3"),
        ("%(a)s and %(b)s", ({"a": 1, "b": 2},), "1 and 2"),
        ("%s", ({"a": 1},), "{'a': 1}"),
        (7, (), "7"),
        # What does not fit is kept as well: a slip in a log line is no reason to fail a job.
        ("%d", ("x",), "%d 'x'"),
        ("done", (1, "x"), "done 1 'x'"),
        ("%s and %s", (1,), "%s and %s 1"),
        ("100 %", (1,), "100 % 1"),
        ("%(a)s", ({"b": 1},), "%(a)s {'b': 1}"),
        ("%s", (Unshowable(),), "%s <Unshowable that cannot be shown>"),
    ],
)
def test_a_line_is_formatted_or_kept(message: Any, args: tuple[object, ...], line: str) -> None:
    notes = Notes()
    JobLog(notes).info(message, *args)
    assert notes.lines == [("info", line)]
