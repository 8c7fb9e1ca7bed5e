-- Steps of single jobs.

-- name: to_ready
UPDATE job SET state = 2, lane = ?, seq = ?, suspect = ?, ready_at = ?, gated = 0, started_at = NULL,
    died_at = NULL
WHERE pk = ?;

-- name: to_scheduled
UPDATE job SET state = 1, due_at = ?, gated = 0 WHERE pk = ?;

-- name: to_final
UPDATE job SET state = ?1, ended_at = ?2, died_at = CASE WHEN ?1 = 5 THEN ?2 END, expires_at = NULL,
    gated = 0, waits_for = 0
WHERE pk = ?3;

-- name: bury
UPDATE job SET form = 2, buried_at = ended_at, died_at = NULL, body = NULL, result = NULL, headers = NULL, progress = NULL, failures = 0
WHERE pk = ?;

-- name: add_failure
INSERT INTO failure (job, number, record) VALUES (?, ?, ?);

-- name: count_failure
UPDATE job SET failures = failures + 1 WHERE pk = ?;

-- name: drop_failure
DELETE FROM failure WHERE job = ? AND number = ?;

-- name: forget_failures
DELETE FROM failure WHERE job = ?;

-- name: forget_log
DELETE FROM log WHERE job = ?;

-- name: forget_checkpoints
DELETE FROM checkpoint WHERE job = ?;

-- name: forget_watches
DELETE FROM watch WHERE job = ?;

-- name: delete_job
DELETE FROM job WHERE pk = ?;
