"""How the processes of a worker write their log: lines on standard error, for people or as JSON.

A program that has set up logging itself, in its app's module or as an embedding program, is left alone.
"""

import logging
import os
import sys
from datetime import UTC, datetime

import msgspec

TEXT = "%(asctime)s %(levelname)-7s %(process)d %(message)s"


class TextLines(logging.Formatter):
    """For people: times of this machine, with their zone."""

    def __init__(self) -> None:
        super().__init__(TEXT)

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        moment = datetime.fromtimestamp(record.created).astimezone()
        return moment.isoformat(sep=" ", timespec="milliseconds")


class JsonLines(logging.Formatter):
    """For programs: one object a line, its time in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": _utc(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": os.getpid(),
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry).decode()


def _utc(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def write_log(log_format: str) -> None:
    """Write "text" or "json" lines from now on, unless the program has set up logging itself."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    root.addHandler(handler)
    root.setLevel(logging.INFO)
