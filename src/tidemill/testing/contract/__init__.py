'''The engine contract as a test suite. What passes it is an engine.

Every behaviour that `tidemill.engine.protocol` promises is tested here once, one file per noun, through the
protocol alone. To run it against your own engine, install pytest and pytest-asyncio (with
`asyncio_mode = "auto"`), and write a `conftest.py`:

    import pytest

    pytest.register_assert_rewrite("tidemill.testing.contract")  # before the import: readable failures

    from tidemill.testing.contract.fixtures import *

    @pytest.fixture
    def engine_url() -> str:
        """The URL of a fresh, empty database."""
        return ...

and test modules, one for each name in `MODULES`, so that a failure names its noun:

    from tidemill.testing.contract.jobs.claim import *

`stateful` needs Hypothesis and a fixture `fresh_engine_url`: a callable that gives a new URL each time.
An engine that offers `transactions` also overrides the fixture `user_connection`: an object with
`execute(sql, parameters)`, which gives the rows, `commit()` and `rollback()`, connected to the same URL and
in a transaction; without it those tests are skipped.

Tests never wait for time: they pass an explicit `now` to every call, and move a `Clock` by hand. Their marker
`row` names the promise that they prove; with `--strict-markers` it has to be registered.
'''

MODULES = (
    "cluster.crash",
    "cluster.leases",
    "cluster.members",
    "cluster.queue_layers",
    "cluster.queues",
    "cluster.retire",
    "cluster.schedules",
    "cluster.signals",
    "cluster.tasks",
    "faults.bad_input",
    "faults.concurrency",
    "faults.engines",
    "faults.lost_reply",
    "jobs.cancel",
    "jobs.children",
    "jobs.claim",
    "jobs.claim_numbers",
    "jobs.deaths",
    "jobs.drop",
    "jobs.enqueue",
    "jobs.lifecycle",
    "jobs.release",
    "jobs.replay",
    "jobs.run_now",
    "jobs.settle",
    "jobs.settle_then",
    "jobs.watch",
    "jobs.write",
    "order.aside",
    "order.gates",
    "order.key_limits",
    "order.lanes",
    "order.plain",
    "order.promote",
    "order.prune",
    "order.rates",
    "read.counts",
    "read.groups",
    "read.inspect",
    "read.moves",
    "read.stats",
    "read.storage",
    "read.why",
    "stateful.stateful",
    "transactions.blocking",
    "transactions.transactions",
    "transactions.transactions_complete",
    "unique.unique_keys",
)
"""The names of the modules with tests."""
