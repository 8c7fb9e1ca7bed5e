-- Members.

-- name: list
SELECT info, since, heartbeat_at, steady_since,
    (SELECT count(*) FROM {schema}.claimant AS c JOIN {schema}.job AS j ON j.claimant = c.id
     WHERE c.member = m.id AND j.token IS NOT NULL),
    coalesce($1::bigint, {schema}.instant_v1())
FROM {schema}.member AS m ORDER BY name, id;
