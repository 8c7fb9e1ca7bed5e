"""What application code holds in its hands."""
