-- Schedules.

-- name: list
SELECT name, timing, job, missed, overlap, waiting, source, declared_at, next_at, last_at, line, paused, retired_at,
    version
FROM {schema}.schedule ORDER BY name;
