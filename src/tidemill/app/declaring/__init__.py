"""What the code of an app declares: queues, tasks, schedules, handlers of deaths."""
