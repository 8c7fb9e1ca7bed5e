"""The way from any thread or loop to an engine."""
