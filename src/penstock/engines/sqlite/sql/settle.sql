-- Recording outcomes. The fence was checked in the same transaction.

-- name: complete_plain
-- A run without gate, children or expiry, fenced here.
UPDATE job SET state = 4, attempts = attempts + 1, settled_fence = fence,
    started_at = ifnull(started_at, ?), ended_at = ?, result = ?
WHERE pk = ? AND fence = ? AND state = 3 AND gated = 0 AND has_children = 0 AND expires_at IS NULL;

-- name: complete
UPDATE job SET state = 4, attempts = attempts + 1, settled_fence = fence, gated = 0, expires_at = NULL,
    started_at = ?, ended_at = ?, result = ?
WHERE pk = ?;

-- name: complete_small
-- The same, dropping body and result.
UPDATE job SET state = 4, attempts = attempts + 1, settled_fence = fence, gated = 0, expires_at = NULL,
    started_at = ?, ended_at = ?, result = NULL, body = NULL, form = 1
WHERE pk = ?;

-- name: end_attempt
-- A failed attempt is used up, a stopped one is not.
UPDATE job SET attempts = attempts + ?, settled_fence = fence, started_at = ? WHERE pk = ?;

-- name: set_schedule
UPDATE schedule SET next_at = ? WHERE name = ?;
