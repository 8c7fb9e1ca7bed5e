-- Schedules.

-- name: list
SELECT name, timing, job, missed, overlap, source, declared_at, next_at, last_at, paused, retired_at, version
FROM {schema}.schedule ORDER BY name;
