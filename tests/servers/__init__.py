"""Private servers for tests and benchmarks."""
