-- Storing new jobs.

-- name: insert_job
-- The first seq is the pk too, so that no pk ever comes twice.
INSERT INTO job (
    pk, id, queue, priority, lane, seq, state, task, key, max_attempts,
    parent_died, created_at, due_at, ready_at, expires_at,
    timeout, retry, on_dead, schedule, codec, headers, body
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING;
