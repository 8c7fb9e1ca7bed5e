-- Recording outcomes. The fence was checked in the same transaction.

-- name: runs_plainly
-- The range of runs at or after ?1, and whether it has these fences and there is no more to the jobs ?1 to ?2.
SELECT last, first, queue, claimed_at, member,
    ahead = ?3 AND NOT EXISTS (SELECT 1 FROM more WHERE pk BETWEEN ?1 AND ?2)
FROM run WHERE last >= ?1 ORDER BY last LIMIT 1;

-- name: scattered_runs
-- The range of runs at or after each of these pks.
SELECT at.value, last, first, queue, claimed_at, member, ahead
FROM json_each(?) AS at
CROSS JOIN run ON run.last = (SELECT min(last) FROM run WHERE last >= at.value);

-- name: more_to
-- Whether there is more to any of these pks.
SELECT EXISTS (SELECT 1 FROM json_each(?) AS at CROSS JOIN more ON more.pk = at.value);

-- name: complete_plain
INSERT INTO outcome (pk, state, ended_at, fence, claimed_at, started_at, member, result)
VALUES (?, 4, ?, ?, ?, ?, ?, ?);

-- name: complete_range
-- Jobs from ?1 on that returned nothing, of one range of runs; ?6 says how long each ran. As one statement
-- they cost 0.9 us each; apart, 3, and as many struggles for the interpreter with the loop's thread.
INSERT INTO outcome (pk, state, ended_at, fence, claimed_at, started_at, member)
SELECT ?1 + key, 4, ?2, ?1 + key + ?3, ?4, ?2 - value, ?5 FROM json_each(?6);

-- name: shrink
UPDATE outcome SET form = 1, result = NULL WHERE pk BETWEEN ? AND ?;

-- name: drop_bodies
UPDATE job SET body = NULL WHERE pk BETWEEN ? AND ?;

-- name: let_go
DELETE FROM held WHERE pk BETWEEN ? AND ? RETURNING queue, task, key;

-- name: use_attempt
UPDATE job SET attempts = attempts + 1 WHERE pk = ?;

-- name: set_schedule
UPDATE schedule SET next_at = ? WHERE name = ? AND (? IS NULL OR version = ?);
