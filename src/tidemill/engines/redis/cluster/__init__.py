"""Members, leases, queues, schedules."""
