-- Queues and the catalogue of tasks.

-- name: list
-- A queue that only a user's transaction has named so far has default options.
SELECT name, options, created_at, paused_at, paused_by, paused_why FROM {schema}.queue
UNION ALL
SELECT name, '{}'::bytea, min(created_at), NULL, '', '' FROM {schema}.queue_new AS n
WHERE NOT EXISTS (SELECT 1 FROM {schema}.queue AS q WHERE q.name = n.name)
GROUP BY name
ORDER BY name;

-- name: publish
INSERT INTO {schema}.task (name, entry) SELECT * FROM unnest($1::text[], $2::bytea[])
ON CONFLICT (name) DO UPDATE SET entry = excluded.entry;

-- name: tasks
SELECT entry FROM {schema}.task ORDER BY name;
