"""PostgreSQL: one schema per namespace, any number of processes on any number of hosts.

A call is one call of one function in PL/pgSQL, which are in `migrations/` with the tables; their names end in
the version of their meaning, so that old and new workers run side by side. Reads are in `sql/`.
"""

from tidemill.engines.postgres.engine import erase, open_engine

__all__ = ["erase", "open_engine"]
