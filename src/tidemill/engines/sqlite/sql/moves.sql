-- Steps of single jobs.

-- name: to_ready
UPDATE job SET state = 2, lane = ?, seq = ?, suspect = ?, ready_at = ? WHERE pk = ?;

-- name: unknown_here
-- A claim met it that does not know its task.
INSERT INTO more (pk, reason) VALUES (?, 'unknown task') ON CONFLICT DO UPDATE SET reason = excluded.reason;

-- name: to_scheduled
UPDATE job SET state = 1, due_at = ? WHERE pk = ?;

-- name: count_snooze
UPDATE job SET snoozes = snoozes + 1 WHERE pk = ?;

-- name: remember_run
-- A run that is over and did not end its job, or whose end is undone by a replay.
INSERT INTO more (pk, fence, settled_fence, claimed_at, member, started_fence, started_at, reason)
VALUES (?1, ?2, ?3, ?4, ?5, ?2, ?6, ?7)
ON CONFLICT DO UPDATE SET fence = excluded.fence, settled_fence = excluded.settled_fence,
    claimed_at = excluded.claimed_at, member = excluded.member, started_fence = excluded.started_fence,
    started_at = excluded.started_at, reason = excluded.reason;

-- name: add_outcome
INSERT INTO outcome (pk, state, ended_at, fence, claimed_at, started_at, member, result)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: wait_no_more
UPDATE more SET waits_for = 0 WHERE pk = ?;

-- name: shrink
UPDATE outcome SET form = 1, result = NULL WHERE pk = ?;

-- name: bury
UPDATE outcome SET form = 2, result = NULL WHERE pk = ?;

-- name: drop_payload
UPDATE job SET body = NULL, headers = iif(?2, headers, NULL) WHERE pk = ?1;

-- name: forget_history
UPDATE more SET progress = NULL, failures = 0 WHERE pk = ?;

-- name: add_failure
INSERT INTO failure (job, number, record) VALUES (?, ?, ?);

-- name: count_failure
INSERT INTO more (pk, failures) VALUES (?, 1) ON CONFLICT DO UPDATE SET failures = failures + 1;

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

-- name: delete_more
DELETE FROM more WHERE pk = ?;

-- name: delete_job
DELETE FROM job WHERE pk = ?;
