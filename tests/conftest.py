"""What every test of the project may use."""

import signal

import pytest

pytest_plugins = ["pytester", "tests.rows", "tests.servers.fixtures"]

pytest.register_assert_rewrite("penstock.testing.contract")  # before anything imports it

# A shell ignores SIGINT for what it starts in the background, and whatever is started from there inherits
# that: our children would never hear the interrupts of tests. A handler, unlike that, is not inherited.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
