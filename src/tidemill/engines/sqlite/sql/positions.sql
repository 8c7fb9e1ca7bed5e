-- Positions: which order a job is in. Ranges have a file of their own.

-- name: add_blocked
INSERT INTO blocked (queue, pk) VALUES (?, ?);

-- name: forget_blocked
DELETE FROM blocked WHERE queue = ? AND pk = ?;

-- name: add_due
INSERT INTO due (queue, due_at, seq, pk) VALUES (?, ?, ?, ?);

-- name: forget_due
DELETE FROM due WHERE queue = ? AND due_at = ? AND seq = ?;

-- name: add_expiring
INSERT INTO expiring (expires_at, pk) VALUES (?, ?);

-- name: forget_expiring
DELETE FROM expiring WHERE expires_at = ? AND pk = ?;

-- name: forget_outcome
DELETE FROM outcome WHERE pk = ?;

-- name: add_grave
INSERT INTO grave (ended_at, pk) VALUES (?, ?);

-- name: forget_grave
DELETE FROM grave WHERE ended_at = ? AND pk = ?;

-- name: add_dead
-- Its last failure was recorded before.
INSERT INTO dead (queue, task, ended_at, pk, fingerprint)
SELECT ?1, ?2, ?3, ?4, coalesce((
    SELECT json_extract(CAST(record AS TEXT), '$.fingerprint') FROM failure
    WHERE job = ?4 ORDER BY number DESC LIMIT 1
), 'unknown');

-- name: forget_dead
DELETE FROM dead WHERE queue = ? AND task = ? AND ended_at = ? AND pk = ?;
