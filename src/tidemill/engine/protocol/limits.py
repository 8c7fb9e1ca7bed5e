"""The bounds of calls."""

BATCH_LIMIT = 1_000
"""The most items in one call."""
PROMOTE_LIMIT = 1_000
"""The most due jobs that one claim moves to ready in each queue it reads; the most children that
one step unblocks before it leaves the rest to the next claim or promote."""
ASIDE_LIMIT = 1_000
"""The most jobs that one claim sets aside."""
UNKNOWN_LIMIT = 100
"""The most tasks that a claim names as unknown to its claimant."""
HANDLED_LIMIT = 4 << 20
"""Bytes: once so much payload of expired jobs has gone on to their handlers in a step, it leaves the rest to
the next one."""
PRUNE_LIMIT = 5_000
"""The most jobs that one prune deletes."""
PRUNE_LEAST = 500
"""So many a prune deletes even if that takes long."""
WHY_LIMIT = 100
"""The most jobs of which one call asks why they do not run."""
