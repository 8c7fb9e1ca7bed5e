"""What happens to jobs: what a call sends, and what its answer says."""
