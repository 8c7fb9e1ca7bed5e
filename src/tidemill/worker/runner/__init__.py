"""Runner processes: each runs one job at a time, and can be killed whatever its code does."""
