"""Signals between processes: NOTIFY and LISTEN."""
