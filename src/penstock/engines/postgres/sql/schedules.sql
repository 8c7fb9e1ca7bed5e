-- Schedules.

-- name: list
SELECT name, timing, job, missed, overlap, source, declared_at, next_at, last_at, paused, retired_at, version
FROM {schema}.schedule ORDER BY name;

-- name: due
SELECT name, timing, job, missed, overlap, source, declared_at, next_at, last_at, paused, retired_at, version
FROM {schema}.schedule
WHERE NOT paused AND retired_at IS NULL AND next_at <= coalesce($1::bigint, {schema}.instant_v1()) ORDER BY next_at, name;
