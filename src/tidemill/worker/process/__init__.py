"""A worker process from the inside, and a worker inside another program."""
