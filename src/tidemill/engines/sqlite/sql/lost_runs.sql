-- Claimants and members that are gone.

-- name: find_claimant
SELECT pk FROM claimant WHERE id = ?;

-- name: remember_retired
INSERT INTO claimant (id, member, retired_at) VALUES (?, x'', ?);

-- name: retire
UPDATE claimant SET retired_at = ifnull(retired_at, ?) WHERE pk = ?;

-- name: retire_all
UPDATE claimant SET retired_at = ifnull(retired_at, ?) WHERE member = ?;

-- name: claimants_of
SELECT pk FROM claimant WHERE member = ?;

-- name: sweeper
SELECT info, heartbeat_at, steady_since FROM member WHERE id = ?;

-- name: gone
SELECT id, name FROM member WHERE gone_at < ? ORDER BY gone_at;

-- name: forget_member
DELETE FROM member WHERE id = ?;

-- name: count_crash
UPDATE job SET suspect = ?, crashes = ? WHERE pk = ?;

-- name: count_lost_run
INSERT INTO more (pk, lost_runs) VALUES (?, ?) ON CONFLICT DO UPDATE SET lost_runs = excluded.lost_runs;
