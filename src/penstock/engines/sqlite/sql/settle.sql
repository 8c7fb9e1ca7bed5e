-- Recording outcomes. The fence was checked in the same transaction.

-- name: runs_plainly
-- The stretch of runs at or after ?1, and whether it is of these fences and all there is to the jobs ?1 to ?2.
SELECT last, first, queue, claimed_at, member,
    ahead = ?3 AND NOT EXISTS (SELECT 1 FROM more WHERE pk BETWEEN ?1 AND ?2)
FROM run WHERE last >= ?1 ORDER BY last LIMIT 1;

-- name: complete_plain
INSERT INTO outcome (pk, state, ended_at, fence, claimed_at, started_at, member, result)
VALUES (?, 4, ?, ?, ?, ?, ?, ?);

-- name: use_attempt
UPDATE job SET attempts = attempts + 1 WHERE pk = ?;

-- name: set_schedule
UPDATE schedule SET next_at = ? WHERE name = ?;
