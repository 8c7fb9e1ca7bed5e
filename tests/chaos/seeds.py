"""Seeds that mean something."""

SHORT_S = 5.0
SHORT_SEEDS = {"sqlite": 1, "postgres": 1, "redis": 1}
"""What `./dev test` plays."""

ONCE_RED: dict[str, dict[int, float]] = {"sqlite": {}, "postgres": {}, "redis": {}}
"""Seed -> seconds of runs that once failed, and must not again: `./dev chaos --regressions`."""
