-- Schedules.

-- name: find
SELECT timing, job, missed, overlap, waiting, keep, source, declared_at, next_at, retired_at FROM schedule
WHERE name = ?;

-- name: add
-- The version begins with the time, so that no schedule of this name has had it before.
INSERT INTO schedule (name, timing, job, missed, overlap, waiting, keep, source, declared_at, next_at, version)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: change
UPDATE schedule SET timing = ?, job = ?, missed = ?, overlap = ?, waiting = ?, keep = ?, source = ?, declared_at = ?,
    next_at = ?, retired_at = NULL, version = version + ? WHERE name = ?;

-- name: fire
-- Only as it was found: the same next tick, and the same last one. Who asks for a run is not refused by a pause.
UPDATE schedule SET last_at = coalesce(?, last_at), line = coalesce(?, line), kept = coalesce(?, kept), next_at = ?
WHERE name = ? AND next_at IS ? AND last_at IS ? AND (paused = 0 OR ?) AND retired_at IS NULL
    AND (? IS NULL OR version = ?);

-- name: is_paused
SELECT paused FROM schedule WHERE name = ?;

-- name: pause
UPDATE schedule SET paused = ? WHERE name = ?;

-- name: is_retired
SELECT retired_at IS NOT NULL FROM schedule WHERE name = ?;

-- name: retire
UPDATE schedule SET retired_at = ? WHERE name = ?;

-- name: set_next
UPDATE schedule SET next_at = ? WHERE name = ? AND (? IS NULL OR version = ?);

-- name: remove
DELETE FROM schedule WHERE name = ?;

-- name: list
SELECT name, timing, job, missed, overlap, waiting, keep, source, declared_at, next_at, last_at, line, kept, paused,
    retired_at, version
FROM schedule ORDER BY name;
