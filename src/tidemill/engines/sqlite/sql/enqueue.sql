-- Storing new jobs.

-- name: insert_alike
-- A ready job of a plain lane, without further options.
INSERT INTO job (pk, seq, id, queue, priority, task, key, max_attempts, created_at, ready_at, codec, body)
VALUES (?1, ?1, ?2, ?3, ?4, ?5, nullif(?6, ''), ?7, ?8, ?8, ?9, ?10)
ON CONFLICT (id) DO NOTHING;

-- name: insert_plain
-- The same for any lane.
INSERT INTO job (pk, seq, id, queue, priority, task, key, max_attempts, created_at, ready_at, codec, body, lane)
VALUES (?1, ?1, ?2, ?3, ?4, ?5, nullif(?6, ''), ?7, ?8, ?8, ?9, ?10, ?11)
ON CONFLICT (id) DO NOTHING;

-- name: insert_job
-- The first seq is the pk too, so that no pk ever comes twice.
INSERT INTO job (
    pk, seq, id, queue, priority, lane, state, task, key, max_attempts,
    created_at, due_at, ready_at, expires_at, timeout, retry, on_dead, schedule, codec, headers, body
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, nullif(?, ''), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING;

-- name: insert_waiting
INSERT INTO more (pk, parent_died) VALUES (?, ?);
