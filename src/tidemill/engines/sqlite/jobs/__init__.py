"""What happens to jobs, but for claims."""
