"""SQLite: nothing but a file. Several processes may share it, on one host.

SQL lives in `sql/`, one file per concern; the schema in `migrations/`.
"""

from tidemill.engines.sqlite.engine import open_engine

__all__ = ["open_engine"]
