-- Queues and the catalogue of tasks.

-- name: list
-- A queue that only a user's transaction has named so far has default options.
SELECT q.name, q.options, coalesce(l.layers, '{}'), coalesce(l.version, 0), q.created_at, q.paused_at, q.paused_by,
    q.paused_why
FROM {schema}.queue AS q LEFT JOIN {schema}.queue_layers AS l ON l.name = q.name
UNION ALL
SELECT name, '{}'::bytea, '{}'::bytea, 0, min(created_at), NULL, '', '' FROM {schema}.queue_new AS n
WHERE NOT EXISTS (SELECT 1 FROM {schema}.queue AS q WHERE q.name = n.name)
GROUP BY name
ORDER BY name;

-- name: layers
SELECT q.name, q.options, coalesce(l.layers, '{}'), coalesce(l.version, 0)
FROM {schema}.queue AS q LEFT JOIN {schema}.queue_layers AS l ON l.name = q.name
WHERE q.name = ANY ($1::text[])
UNION ALL
SELECT DISTINCT name, '{}'::bytea, '{}'::bytea, 0 FROM {schema}.queue_new AS n
WHERE name = ANY ($1::text[]) AND NOT EXISTS (SELECT 1 FROM {schema}.queue AS q WHERE q.name = n.name);

-- name: publish
INSERT INTO {schema}.task (name, entry) SELECT * FROM unnest($1::text[], $2::bytea[])
ON CONFLICT (name) DO UPDATE SET entry = excluded.entry;

-- name: tasks
SELECT t.entry, p.paused_at, coalesce(p.paused_by, ''), coalesce(p.paused_why, '')
FROM {schema}.task AS t LEFT JOIN {schema}.paused_task AS p ON p.name = t.name ORDER BY t.name;
