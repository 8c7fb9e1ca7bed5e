"""Random commands against the reference."""

import pytest

from tidemill.testing.contract.stateful.stateful import test_random_commands  # noqa: F401

pytestmark = pytest.mark.timeout(600)  # a failure is shrunk before it is shown
