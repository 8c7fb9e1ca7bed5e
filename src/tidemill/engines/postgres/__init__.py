"""PostgreSQL: one schema per namespace, any number of processes on any number of hosts.

| module | what it does |
|---|---|
| `place`, `options`, `errors`, `schema` | the URL, PostgreSQL's errors as ours, migrations |
| `dial`, `line`, `store` | the way there, connections that come back by themselves, and who uses which |
| `post`, `ear` | signals: sent, and heard |
| `arrays`, `enqueue`, `claim`, `settle` | the hot paths: from records to the arrays of one call and back |
| `cursors`, `turns`, `looks` | what this process remembers of the lanes, and looks behind its cursors |
| `rows`, `listing` | what is known of jobs |
| `jobs`, `inspect`, `queues`, `schedules`, `locks`, `members`, `signals`, `transactions` | the facets |
| `engine` | all of it |

A call is one call of one function in PL/pgSQL, which are in `migrations/` with the tables; their names end in
the version of their meaning, so that old and new workers run side by side. Reads are in `sql/`.
"""

from tidemill.engines.postgres.engine import erase, open_engine

__all__ = ["erase", "open_engine"]
