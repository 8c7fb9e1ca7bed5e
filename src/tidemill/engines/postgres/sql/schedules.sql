-- Schedules.

-- name: list
SELECT name, timing, job, missed, overlap, waiting, keep, source, declared_at, next_at, last_at, line, kept, paused,
    retired_at, version
FROM {schema}.schedule ORDER BY name;
