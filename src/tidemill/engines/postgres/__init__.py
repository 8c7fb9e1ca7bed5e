"""PostgreSQL: one schema per namespace, any number of processes on any number of hosts.

| module | what it does |
|---|---|
| `place`, `options`, `errors`, `schema` | the URL, PostgreSQL's errors as ours, migrations |
| `dial`, `line`, `store` | the way there, connections that come back by themselves, and who uses which |
| `post`, `ear` | signals: sent, and heard |
| `arrays`, `enqueue`, `claim`, `settle` | the hot paths: from records to the arrays of one call and back |
| `cursors`, `scanned_until`, `late_commits` | how far this process has claimed, and jobs that claims passed |
| `rows`, `listing` | what is known of jobs |
| `jobs`, `inspect`, `queues`, `schedules`, `locks`, `members`, `signals`, `transactions` | the facets |
| `engine` | all of it |

A call is one call of one function in PL/pgSQL. The functions are in `schema/` with the tables. A function's
name ends in the version of its meaning: a function that changes its meaning gets a new name, and the old one
stays for a release, so that old and new workers run side by side. Reads are in `sql/`.
"""

from tidemill.engines.postgres.engine import erase, open_engine

__all__ = ["erase", "open_engine"]
