"""Queues: options, lanes, limits."""
