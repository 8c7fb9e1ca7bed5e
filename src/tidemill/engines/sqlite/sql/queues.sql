-- Queues and the catalogue of tasks.

-- name: layers
SELECT options, layers, version FROM queue WHERE pk = ?;

-- name: set_layers
UPDATE queue SET layers = ?, version = version + 1 WHERE pk = ?;

-- name: set_options
UPDATE queue SET options = ? WHERE pk = ?;

-- name: options_changed
UPDATE counter SET options = options + 1;

-- name: pause
UPDATE queue SET paused_at = ?, paused_by = ?, paused_why = ? WHERE pk = ?;

-- name: resume
UPDATE queue SET paused_at = NULL, paused_by = '', paused_why = '' WHERE pk = ?;

-- name: list
SELECT name, options, layers, version, created_at, paused_at, paused_by, paused_why FROM queue ORDER BY name;

-- name: publish
INSERT INTO task (name, entry) VALUES (?, ?) ON CONFLICT DO UPDATE SET entry = excluded.entry;

-- name: tasks
SELECT entry, paused_at, paused_by, paused_why FROM task ORDER BY name;

-- name: task_pause
SELECT paused_at FROM task WHERE name = ?;

-- name: pause_task
UPDATE task SET paused_at = ?, paused_by = ?, paused_why = ? WHERE name = ?;

-- name: resume_task
UPDATE task SET paused_at = NULL, paused_by = '', paused_why = '' WHERE name = ?;
