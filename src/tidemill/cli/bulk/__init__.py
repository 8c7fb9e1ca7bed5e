"""One action on many jobs, after a preview."""
