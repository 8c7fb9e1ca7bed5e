"""How the processes of a worker write their log: lines on standard error, for people or as JSON.

A program that has set up logging itself, in its app's module or as an embedding program, is left alone.
"""

import logging
import os
import sys

import msgspec

TEXT = "%(asctime)s %(levelname)-7s %(process)d %(message)s"


class JsonLines(logging.Formatter):
    """One object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03}",
            "level": record.levelname.lower(),
            "logger": record.name,
            "pid": os.getpid(),
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return msgspec.json.encode(entry).decode()


def write_log(log_format: str) -> None:
    """Write "text" or "json" lines from now on, unless somebody else takes care of it."""
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else logging.Formatter(TEXT))
    root.addHandler(handler)
    root.setLevel(logging.INFO)
