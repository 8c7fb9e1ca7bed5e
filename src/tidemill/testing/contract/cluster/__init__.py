"""The contract of members, leases, signals, schedules and queues, and of what follows from a death."""
