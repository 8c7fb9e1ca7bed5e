"""Redis (6.2 or newer) and Valkey: one key prefix per namespace, any number of processes and hosts.

| module | what it does |
|---|---|
| `place`, `options`, `errors`, `schema` | the URL, Redis's errors as ours, whether the place can be used |
| `scripts` | the Lua files with the fragments that they include |
| `line`, `store` | single connections that come back by themselves, and who uses which |
| `copies` | waiting for replicas |
| `call`, `pack`, `rows` | from records to the arguments of a script, and from its answer back |
| `tail` | what never changes of a job, packed by its producer and read by its worker |
| `enqueue`, `claim`, `settle` | the hot paths |
| `post` | signals: PUBLISH by the script that made the change, SUBSCRIBE on a connection of its own |
| `listing` | pages of jobs |
| `jobs`, `inspect`, `queues`, `schedules`, `locks`, `members`, `signals` | the facets |
| `engine` | all of it |

A call is one script, and scripts run one after another: that is what makes it one atomic step. The scripts
are in `lua/`, one file per operation.
"""

from tidemill.engines.redis.engine import erase, open_engine

__all__ = ["erase", "open_engine"]
