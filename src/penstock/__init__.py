"""Penstock: a distributed task scheduler for Python.

This module is the list of public names and nothing else. What is not named here may change without notice.
"""

__all__: list[str] = []
