-- Ranges: rows that stand for consecutive jobs, first to last. Each table has the same four statements:
-- the range at or after a number, its front or all of it taken away, and what lies before split off.

-- name: ready_find
SELECT last, first FROM ready
WHERE queue = ? AND priority = ? AND kind = ? AND lane = ? AND last >= ? ORDER BY last LIMIT 1;

-- name: ready_shorten
UPDATE ready SET first = ?6 WHERE queue = ?1 AND priority = ?2 AND kind = ?3 AND lane = ?4 AND last = ?5;

-- name: ready_remove
DELETE FROM ready WHERE queue = ? AND priority = ? AND kind = ? AND lane = ? AND last = ?;

-- name: ready_split
INSERT INTO ready (queue, priority, kind, lane, last, first, ahead)
SELECT queue, priority, kind, lane, ?6, first, ahead FROM ready
WHERE queue = ?1 AND priority = ?2 AND kind = ?3 AND lane = ?4 AND last = ?5;

-- name: run_find
SELECT last, first FROM run WHERE last >= ? ORDER BY last LIMIT 1;

-- name: run_shorten
UPDATE run SET first = ?2 WHERE last = ?1;

-- name: run_remove
DELETE FROM run WHERE last = ?;

-- name: run_split
INSERT INTO run (last, first, ahead, queue, claimant, claim_no, claimed_at, member)
SELECT ?2, first, ahead, queue, claimant, claim_no, claimed_at, member FROM run WHERE last = ?1;

-- name: ended_find
SELECT last, first FROM ended
WHERE queue = ? AND state = ? AND ended_at = ? AND last >= ? ORDER BY last LIMIT 1;

-- name: ended_shorten
UPDATE ended SET first = ?5 WHERE queue = ?1 AND state = ?2 AND ended_at = ?3 AND last = ?4;

-- name: ended_remove
DELETE FROM ended WHERE queue = ? AND state = ? AND ended_at = ? AND last = ?;

-- name: ended_split
INSERT INTO ended (queue, state, ended_at, last, first)
SELECT queue, state, ended_at, ?5, first FROM ended
WHERE queue = ?1 AND state = ?2 AND ended_at = ?3 AND last = ?4;

-- name: add_ready
INSERT INTO ready (queue, priority, kind, lane, last, first, ahead) VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: add_run
INSERT INTO run (last, first, ahead, queue, claimant, claim_no, claimed_at, member)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: add_ended
INSERT INTO ended (queue, state, ended_at, last, first) VALUES (?, ?, ?, ?, ?);
