"""What every test of the project may use."""

import pytest

pytest_plugins = ["pytester", "tests.rows", "tests.servers.fixtures"]

pytest.register_assert_rewrite("penstock.testing.contract")  # before anything imports it
