-- Statistics: waiting and run times by the minute, and samples of queues.

-- name: packed
SELECT packed FROM stat WHERE grain = ? AND minute = ? AND queue = ? AND task = ?;

-- name: put
INSERT OR REPLACE INTO stat (grain, minute, queue, task, packed) VALUES (?, ?, ?, ?, ?);

-- name: tasks_of
-- How many tasks have rows of their own in a minute.
SELECT count(*) FROM stat WHERE grain = 1 AND minute = ? AND task <> ?;

-- name: read
-- ?1 grain, ?2 first, ?3 until, ?4 queue or NULL, ?5 task or NULL
SELECT queue, task, minute, packed FROM stat
WHERE grain = ?1 AND minute >= ?2 AND minute < ?3 AND (?4 IS NULL OR queue = ?4) AND (?5 IS NULL OR task = ?5);

-- name: finished
SELECT queue.name, minute, completed, failed, dead, cancelled FROM finished JOIN queue ON queue.pk = finished.queue
WHERE minute >= ?1 AND minute < ?2 AND (?3 IS NULL OR queue.name = ?3);

-- name: samples
SELECT queue, minute, stock, arrived, oldest_ready FROM sample
WHERE minute >= ?1 AND minute < ?2 AND (?3 IS NULL OR queue = ?3);

-- name: is_sampled
SELECT EXISTS (SELECT 1 FROM sample WHERE minute = ?);

-- name: sample
INSERT OR IGNORE INTO sample (minute, queue, stock, arrived, oldest_ready) VALUES (?, ?, ?, ?, ?);
