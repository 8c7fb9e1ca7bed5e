"""Members, leases, queues, schedules, signals."""
