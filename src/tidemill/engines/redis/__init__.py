"""Redis (6.2 or newer) and Valkey: one key prefix per namespace, any number of processes and hosts.

A call is one script, and scripts run one after another: that is what makes it one atomic step. The scripts
are in `lua/`, one file per operation.
"""

from tidemill.engines.redis.engine import erase, open_engine

__all__ = ["erase", "open_engine"]
