"""What a task is: its name, its signature, how its arguments travel, and what running code can ask."""
