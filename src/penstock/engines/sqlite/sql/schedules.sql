-- Schedules.

-- name: find
SELECT timing, job, missed, next_at FROM schedule WHERE name = ?;

-- name: add
INSERT INTO schedule (name, timing, job, missed, next_at) VALUES (?, ?, ?, ?, ?);

-- name: change
UPDATE schedule SET timing = ?, job = ?, missed = ?, next_at = ?, version = version + 1 WHERE name = ?;

-- name: fire
-- Only for the tick that is still the next one.
UPDATE schedule SET last_at = ?, next_at = ? WHERE name = ? AND next_at = ? AND paused = 0;

-- name: is_paused
SELECT paused FROM schedule WHERE name = ?;

-- name: pause
UPDATE schedule SET paused = ? WHERE name = ?;

-- name: remove
DELETE FROM schedule WHERE name = ?;

-- name: list
SELECT name, timing, job, missed, next_at, last_at, paused, version FROM schedule ORDER BY name;

-- name: due
SELECT name, timing, job, missed, next_at, last_at, paused, version FROM schedule
WHERE paused = 0 AND next_at <= ? ORDER BY next_at, name;
