-- Named leases.

-- name: find
SELECT holder, fence FROM lease WHERE name = ? AND expires_at > ?;

-- name: put
INSERT OR REPLACE INTO lease (name, holder, fence, expires_at) VALUES (?, ?, ?, ?);

-- name: renew
UPDATE lease SET expires_at = ? WHERE name = ? AND fence = ? AND expires_at > ?;

-- name: release
DELETE FROM lease WHERE name = ? AND fence = ? AND expires_at > ?;

-- name: list
SELECT name, holder, fence, expires_at FROM lease WHERE expires_at > ? ORDER BY name;
