-- Time passes.

-- name: due
SELECT pk, priority, suspect, task, key FROM job
WHERE state = 1 AND queue = ? AND due_at <= ? ORDER BY due_at, seq LIMIT ?;

-- name: make_ready
UPDATE job SET state = 2, lane = ?, seq = ?, ready_at = ? WHERE pk = ?;

-- name: next_due
SELECT min(due_at) FROM job WHERE state = 1 AND queue = ?;
