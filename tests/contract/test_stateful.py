"""Random commands against the reference."""

from penstock.testing.contract.stateful import test_random_commands  # noqa: F401
