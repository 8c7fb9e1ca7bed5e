"""Unique keys: who holds them, and what becomes of a call that meets a job."""
