"""SQLite: nothing but a file. Several processes may share it, on one host.

| module | what it does |
|---|---|
| `place`, `connection`, `schema` | the URL, the connection and its errors, migrations |
| `calls`, `writer`, `store`, `step`, `catalogue` | the writer with group commit, an operation in it, queues |
| `enqueue`, `claim`, `settle` | the hot paths |
| `choice`, `lanes`, `gates`, `promote` | what a claim may take, and in which order |
| `facts`, `runs`, `rows`, `listing`, `beats`, `storage` | what is known of jobs, members and files |
| `moves`, `children`, `ripple`, `losses`, `commands`, `prune` | every other step of a job |
| `jobs`, `inspect`, `queues`, `schedules`, `locks`, `members`, `signals`, `transactions` | the facets |
| `engine` | all of it |

SQL lives in `sql/`, one file per concern; the schema in `schema/`.
"""

from tidemill.engines.sqlite.engine import open_engine

__all__ = ["open_engine"]
