-- Lanes: (queue, priority, kind, lane), where lane is the text of its group (and of jobs that stand aside, also the task).

-- name: announce
-- A lane whose key's gate is full begins parked.
INSERT OR IGNORE INTO lane (queue, priority, kind, lane, task, key, aside, parked)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7,
       EXISTS (SELECT 1 FROM parked WHERE queue = ?1 AND kind = 'key' AND name = ?6);

-- name: mark_stale
UPDATE lane SET stale = 0 WHERE queue = ?;

-- name: stale_lane
SELECT priority, kind, lane, stale FROM lane INDEXED BY lane_stale
WHERE queue = ? AND stale IS NOT NULL LIMIT 1;

-- name: stale_jobs
SELECT job.pk, job.seq, job.task, job.key
FROM ready CROSS JOIN job ON job.pk BETWEEN ready.first - ready.ahead AND ready.last - ready.ahead
WHERE ready.queue = ?1 AND ready.priority = ?2 AND ready.kind = ?3 AND ready.lane = ?4
  AND ready.last >= ?5 AND job.seq >= ?5
ORDER BY ready.last, job.pk LIMIT ?6;

-- name: move_job
UPDATE job SET lane = ? WHERE pk = ?;

-- name: stale_from
UPDATE lane SET stale = ? WHERE queue = ? AND priority = ? AND kind = ? AND lane = ?;

-- name: delete_lane
DELETE FROM lane WHERE queue = ? AND priority = ? AND kind = ? AND lane = ?;

-- name: delete_empty_lane
DELETE FROM lane WHERE queue = ?1 AND priority = ?2 AND kind = ?3 AND lane = ?4 AND NOT EXISTS (
    SELECT 1 FROM ready WHERE queue = ?1 AND priority = ?2 AND kind = ?3 AND lane = ?4
);

-- name: check_queue
-- What a claim asks of a queue before anything else: whether jobs are due, whether lanes are stale, and whether jobs
-- stand aside.
SELECT
    EXISTS (SELECT 1 FROM due WHERE queue = ?1 AND due_at <= ?2),
    EXISTS (SELECT 1 FROM lane INDEXED BY lane_stale WHERE queue = ?1 AND stale IS NOT NULL),
    EXISTS (SELECT 1 FROM lane INDEXED BY lane_aside WHERE queue = ?1 AND aside IS NOT NULL);

-- name: check_plain_queue
-- The same of a queue that has one lane a priority; also whether a suspect waits in it, and the first priority
-- that has a lane.
SELECT
    EXISTS (SELECT 1 FROM due WHERE queue = ?1 AND due_at <= ?2),
    EXISTS (SELECT 1 FROM lane INDEXED BY lane_stale WHERE queue = ?1 AND stale IS NOT NULL),
    EXISTS (
        SELECT 1 FROM lane INDEXED BY lane_open
        WHERE queue = ?1 AND parked = 0 AND kind = 1 AND EXISTS (
            SELECT 1 FROM ready
            WHERE queue = ?1 AND priority = lane.priority AND kind = 1 AND ready.lane = lane.lane
        )
    ),
    (SELECT min(priority) FROM lane INDEXED BY lane_open WHERE queue = ?1 AND parked = 0),
    EXISTS (SELECT 1 FROM lane INDEXED BY lane_aside WHERE queue = ?1 AND aside IS NOT NULL);

-- name: next_priority
-- The next priority that has an open lane.
SELECT min(priority) FROM lane INDEXED BY lane_open WHERE queue = ? AND parked = 0 AND priority > ?;

-- name: open_lanes
-- Open lanes of one priority within a range of groups, in the order of their turns.
-- Left alone, the planner takes the primary key and walks the parked ones too (50,000: 4.3 ms against 0.1).
SELECT lane, key FROM lane INDEXED BY lane_open
WHERE queue = ? AND parked = 0 AND priority = ? AND kind = ? AND task = ? AND lane >= ? AND lane <= ?
ORDER BY lane LIMIT ?;

-- name: aside_tasks
-- The tasks of which jobs may stand aside in a queue. It jumps from task to task, whatever the number of their lanes.
WITH RECURSIVE task (name) AS (
    SELECT min(aside) FROM lane INDEXED BY lane_aside WHERE queue = ?1 AND aside IS NOT NULL
    UNION ALL
    SELECT (SELECT min(aside) FROM lane INDEXED BY lane_aside WHERE queue = ?1 AND aside > task.name)
    FROM task WHERE task.name IS NOT NULL
)
SELECT name FROM task WHERE name IS NOT NULL;

-- name: queues_aside
-- The queues in which jobs of a task may stand aside.
SELECT pk FROM queue WHERE EXISTS (SELECT 1 FROM lane INDEXED BY lane_aside WHERE queue = queue.pk AND aside = ?);
