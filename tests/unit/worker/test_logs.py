"""The log of a worker's processes."""

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest

from tidemill.worker.logs import write_log


@contextmanager
def a_program(*own: logging.Handler) -> Iterator[logging.Logger]:
    """One that has set up these handlers for itself."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers[:] = own
    try:
        yield root
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def test_lines_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    with a_program():
        write_log("text")
        logging.getLogger("tidemill.worker").info("drained: %d", 3)
        logging.getLogger("tidemill.worker").debug("unseen")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("drained: 3")
    assert " INFO " in line
    date, clock = line.split()[:2]
    assert datetime.fromisoformat(f"{date} {clock}").tzinfo is not None


def test_lines_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    with a_program():
        write_log("json")
        try:
            raise ValueError("no")
        except ValueError:
            logging.getLogger("shop").exception("two\nlines")
    (line,) = capsys.readouterr().err.splitlines()
    entry = json.loads(line)
    assert (entry["level"], entry["logger"], entry["message"]) == ("error", "shop", "two\nlines")
    assert entry["time"].endswith("Z")
    assert entry["traceback"].endswith("ValueError: no")


def test_a_program_that_logs_in_its_own_way_is_left_alone() -> None:
    own = logging.StreamHandler(sys.stdout)
    with a_program(own) as root:
        write_log("json")
        assert root.handlers == [own]
