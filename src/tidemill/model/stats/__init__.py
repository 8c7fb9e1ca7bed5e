"""Statistics: how long jobs wait and run, how many arrive."""
