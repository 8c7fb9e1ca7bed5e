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
INSERT OR REPLACE INTO task (name, entry) VALUES (?, ?);

-- name: tasks
SELECT entry FROM task ORDER BY name;
