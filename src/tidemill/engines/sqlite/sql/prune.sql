-- Retention.

-- name: tally
SELECT count FROM tally WHERE queue = ? AND state = ?;

-- name: forget_watches
DELETE FROM watch WHERE until <= ?;

-- name: forget_starts
-- Entries of rates that no longer count.
DELETE FROM start WHERE until <= ?;

-- name: forget_leases
DELETE FROM lease WHERE expires_at <= ?;

-- name: forget_claimants
DELETE FROM claimant WHERE retired_at <= ?;

-- name: forget_minutes
DELETE FROM finished WHERE minute < ?;

-- name: forget_stats
DELETE FROM stat WHERE grain IN (0, 1) AND minute < ?;

-- name: forget_samples
DELETE FROM sample WHERE minute < ?;
