-- Time passes.

-- name: due
SELECT job.pk, due.due_at, due.seq, job.priority, job.suspect, job.task, job.key, job.id
FROM due CROSS JOIN job ON job.pk = due.pk
WHERE due.queue = ? AND due.due_at <= ? ORDER BY due.due_at, due.seq LIMIT ?;

-- name: make_ready
UPDATE job SET state = 2, lane = ?, seq = ?, ready_at = ? WHERE pk = ?;

-- name: forget_due
DELETE FROM due WHERE queue = ? AND due_at = ? AND seq = ?;

-- name: next_due
SELECT min(due_at) FROM due WHERE queue = ?;
