-- Gates: (queue, kind, name), kind queue | task | key.

-- name: held_by_queue
-- Counted up to the limit; ?2 is the empty name of a queue's own gate.
SELECT count(*) FROM (SELECT 1 FROM held WHERE queue = ?1 AND ?2 = '' LIMIT ?3);

-- name: held_by_task
SELECT count(*) FROM (SELECT 1 FROM held WHERE queue = ?1 AND task = ?2 LIMIT ?3);

-- name: held_by_key
SELECT count(*) FROM (SELECT 1 FROM held WHERE queue = ?1 AND key = ?2 LIMIT ?3);

-- name: starts
SELECT step, count FROM start WHERE queue = ? AND kind = ? AND name = ? AND step > ?;

-- name: log_starts
INSERT INTO start (queue, kind, name, step, count, until) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET count = count + excluded.count, until = excluded.until;

-- name: is_parked
SELECT 1 FROM parked WHERE queue = ? AND kind = ? AND name = ?;

-- name: park
INSERT OR REPLACE INTO parked (queue, kind, name, wake_at) VALUES (?, ?, ?, ?);

-- name: unpark
-- Only what waits for a holder to go.
DELETE FROM parked WHERE queue = ? AND kind = ? AND name = ? AND wake_at IS NULL;

-- name: unpark_queue
DELETE FROM parked WHERE queue = ?;

-- name: redate_starts
-- A NULL name: every key except those that are named last. Below zero, where no other step is met on the way; `settle_redated` follows.
UPDATE start SET step = -(step + ?), until = step + ? WHERE queue = ? AND kind = ? AND (? IS NULL OR name = ?)
AND name NOT IN (SELECT value FROM json_each(?));

-- name: settle_redated
UPDATE start SET step = -step WHERE queue = ? AND step < 0;

-- name: wake
DELETE FROM parked WHERE (queue, kind, name) IN (
    SELECT queue, kind, name FROM parked WHERE queue = ? AND wake_at IS NOT NULL AND wake_at <= ? LIMIT ?
)
RETURNING kind, name;

-- name: next_wake
SELECT min(wake_at) FROM parked WHERE queue = ? AND wake_at IS NOT NULL;

-- name: mark_lanes
UPDATE lane SET parked = ? WHERE queue = ? AND key = ?;

-- name: mark_all_lanes
UPDATE lane SET parked = 0 WHERE queue = ? AND parked = 1;

-- name: hold
-- It runs behind a gate.
INSERT INTO held (pk, queue, task, key) VALUES (?, ?, ?, ?);

-- name: let_go
DELETE FROM held WHERE pk = ?;

-- name: hold_running
-- Jobs that ran before there was a limit count from now on.
INSERT OR IGNORE INTO held (pk, queue, task, key)
SELECT job.pk, job.queue, job.task, ifnull(job.key, '')
FROM run CROSS JOIN job ON job.pk BETWEEN run.first AND run.last WHERE run.queue = ?;

-- name: let_go_all
-- There is no limit any more.
DELETE FROM held WHERE queue = ?;
