-- Queues and the catalogue of tasks.

-- name: configure
UPDATE queue SET options = ? WHERE pk = ?;

-- name: pause
UPDATE queue SET paused_at = ?, paused_by = ?, paused_why = ? WHERE pk = ?;

-- name: resume
UPDATE queue SET paused_at = NULL, paused_by = '', paused_why = '' WHERE pk = ?;

-- name: list
SELECT name, options, created_at, paused_at, paused_by, paused_why FROM queue ORDER BY name;

-- name: publish
INSERT OR REPLACE INTO task (name, entry) VALUES (?, ?);

-- name: tasks
SELECT entry FROM task ORDER BY name;
