"""Schedules: when they fire, which jobs a tick makes, how a timing is said in words."""
