"""The contract of calls on the user's own connection, and of calls without a loop."""
