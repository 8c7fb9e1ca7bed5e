-- Named leases. The last parameter is now, NULL for the server's clock.

-- name: renew
UPDATE {schema}.lease SET expires_at = coalesce($4::bigint, {schema}.instant_v1()) + $3::bigint
WHERE name = $1 AND fence = $2 AND expires_at > coalesce($4::bigint, {schema}.instant_v1())
RETURNING 1;

-- name: release
DELETE FROM {schema}.lease
WHERE name = $1 AND fence = $2 AND expires_at > coalesce($3::bigint, {schema}.instant_v1())
RETURNING 1;

-- name: list
SELECT name, holder, fence, expires_at FROM {schema}.lease
WHERE expires_at > coalesce($1::bigint, {schema}.instant_v1()) ORDER BY name;
