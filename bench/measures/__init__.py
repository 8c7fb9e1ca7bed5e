"""One file per question. Each answers comparisons for a plan."""
