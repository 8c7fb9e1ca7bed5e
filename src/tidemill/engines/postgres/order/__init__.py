"""What this process remembers of each lane, and how it finds jobs that were committed late."""
