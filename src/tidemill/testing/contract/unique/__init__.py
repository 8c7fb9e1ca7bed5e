"""Unique keys."""
