-- Unique keys (decision 0031). All writes are in one transaction at a time: what was read is still true.

-- name: find_job
SELECT 1 FROM job WHERE id = ?;

-- name: find_replaced
-- The job that a call with this id has replaced.
SELECT job.id FROM replacing JOIN job ON job.pk = replacing.pk WHERE replacing.id = ?;

-- name: find_holder
SELECT pk FROM unique_key WHERE task = ? AND key = ?;

-- name: find_period
SELECT job FROM unique_period WHERE task = ? AND key = ? AND until > ?;

-- name: note_key
INSERT INTO more (pk, unique_key, unique_until) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET unique_key = excluded.unique_key, unique_until = excluded.unique_until;

-- name: hold
INSERT OR IGNORE INTO unique_key (task, key, pk, at_start) VALUES (?, ?, ?, ?);

-- name: hold_for_period
-- One that the same job holds goes on as it is.
INSERT INTO unique_period (task, key, job, until) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT DO UPDATE SET job = excluded.job, until = excluded.until WHERE until <= ?5;

-- name: free
DELETE FROM unique_key WHERE task = ? AND key = ? AND pk = ?;

-- name: free_at_start
DELETE FROM unique_key WHERE at_start = 1 AND pk IN (SELECT value FROM json_each(?));

-- name: created_at
SELECT created_at FROM job WHERE pk = ?;

-- name: replace
UPDATE job SET body = ?, codec = ?, headers = ?, key = nullif(?, ''), priority = ?, due_at = ?, expires_at = ?
WHERE pk = ?;

-- name: place
-- Where a replaced job stands: what `to_ready` writes, for any state.
UPDATE job SET state = ?, lane = ?, seq = ?, ready_at = ifnull(?, ready_at) WHERE pk = ?;

-- name: remember_replacing
INSERT INTO replacing (id, pk) VALUES (?, ?);

-- name: forget_replacing
DELETE FROM replacing WHERE pk = ?1 AND number NOT IN (
    SELECT number FROM replacing WHERE pk = ?1 ORDER BY number DESC LIMIT ?2
);

-- name: forget_all_replacing
DELETE FROM replacing WHERE pk = ?;

-- name: forget_periods
DELETE FROM unique_period WHERE (task, key) IN (
    SELECT task, key FROM unique_period WHERE until <= ? LIMIT ?
);
