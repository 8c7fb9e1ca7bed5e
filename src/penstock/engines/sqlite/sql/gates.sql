-- Gates: (queue, kind, name), kind queue | task | key.

-- name: held_by_queue
-- Counted up to the limit; ?2 is the empty name of a queue's own gate.
SELECT count(*) FROM (SELECT 1 FROM job WHERE gated = 1 AND queue = ?1 AND ?2 = '' LIMIT ?3);

-- name: held_by_task
SELECT count(*) FROM (SELECT 1 FROM job WHERE gated = 1 AND queue = ?1 AND task = ?2 LIMIT ?3);

-- name: held_by_key
SELECT count(*) FROM (SELECT 1 FROM job WHERE gated = 1 AND queue = ?1 AND key = ?2 LIMIT ?3);

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
-- A NULL name: every key.
UPDATE start SET step = step + ?, until = step + ? WHERE queue = ? AND kind = ? AND (? IS NULL OR name = ?);

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

-- name: gate_running
-- Jobs that ran before there was a limit count from now on.
UPDATE job SET gated = 1 WHERE state = 3 AND queue = ? AND gated = 0;
