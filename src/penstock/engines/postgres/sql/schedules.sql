-- Schedules.

-- name: list
SELECT name, timing, job, missed, next_at, last_at, paused, version FROM {schema}.schedule ORDER BY name;

-- name: due
SELECT name, timing, job, missed, next_at, last_at, paused, version FROM {schema}.schedule
WHERE NOT paused AND next_at <= coalesce($1::bigint, {schema}.instant_v1()) ORDER BY next_at, name;
