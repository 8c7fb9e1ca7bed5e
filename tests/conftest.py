"""What every test of the project may use."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

pytest_plugins = [
    "pytester",
    "tests.collecting",
    "tests.leftovers",
    "tests.order",
    "tests.rows",
    "tests.selection",
    "tests.servers.fixtures",
    "tests.under_way",
]

pytest.register_assert_rewrite("tidemill.testing.contract", "tests.integration.any_server")  # before imports

# A shell ignores SIGINT for what it starts in the background, and whatever is started from there inherits
# that: our children would never hear the interrupts of tests. A handler, unlike that, is not inherited.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The private servers have no TLS. To make ready for it, as a client does unless told otherwise, takes half of
# the processor time of a small test on PostgreSQL. test_tls.py has its own.
os.environ.setdefault("PGSSLMODE", "disable")

# Hypothesis mixes constants of all modules that happen to be imported into what it makes up: with the same
# seed a test got other values in a whole run than alone.
providers._get_local_constants = lambda: providers._local_constants

# How long an example takes depends on what else the machine does: no test is decided by it.
settings.register_profile("tidemill", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tidemill")
