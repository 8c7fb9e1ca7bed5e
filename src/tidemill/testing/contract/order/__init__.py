"""The contract of order: lanes, limits, due times, retention."""
