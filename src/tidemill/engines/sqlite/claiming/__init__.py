"""Claims: which jobs, in which order, and what a claim writes."""
