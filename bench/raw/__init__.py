"""Frozen minimal loops, one per store: the ceiling that an engine is measured against.

They change only when a faster honest shape is found, never to make a ratio look better.
"""
