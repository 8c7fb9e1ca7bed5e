-- Why a job is where it is. Each statement finds what it counts at an end of an index, and stops at a bound.

-- name: queue
SELECT pk, options, paused_at, paused_by, paused_why FROM queue WHERE name = ?;

-- name: task_pause
SELECT paused_at, paused_by, paused_why FROM task WHERE name = ? AND paused_at IS NOT NULL;

-- name: members
SELECT info, since, heartbeat_at, steady_since, 0 FROM member;

-- name: ahead
-- ?5: the job's seq. Ranges before it, nearest first, and the part of its own range. Ranges do not overlap.
SELECT ifnull(sum(count), 0) FROM (
    SELECT * FROM (
        SELECT last - first + 1 AS count FROM ready
        WHERE queue = ?1 AND priority = ?2 AND kind = ?3 AND lane = ?4 AND last < ?5
        ORDER BY last DESC LIMIT ?6
    )
    UNION ALL
    SELECT max(0, ?5 - first) FROM (
        SELECT first FROM ready
        WHERE queue = ?1 AND priority = ?2 AND kind = ?3 AND lane = ?4 AND last >= ?5
        ORDER BY last LIMIT 1
    )
);

-- name: better
-- Those that stand aside (kind 2 and 3) hold nobody back.
SELECT ifnull(sum(last - first + 1), 0)
FROM (SELECT first, last FROM ready WHERE queue = ?1 AND priority < ?2 AND kind < 2 LIMIT ?3);

-- name: parents
SELECT job_now.id, job_now.state FROM (SELECT parent FROM wait WHERE child = ?1 LIMIT ?2) AS some
CROSS JOIN job_now ON job_now.pk = some.parent;

-- name: holders_of_queue
-- ?2 is the empty name of a queue's own gate.
SELECT job.id, run.member, run.claimed_at FROM (SELECT pk FROM held WHERE queue = ?1 AND ?2 = '' LIMIT ?3) AS some
CROSS JOIN job ON job.pk = some.pk
CROSS JOIN run ON run.last = (SELECT min(last) FROM run WHERE last >= some.pk);

-- name: holders_of_task
SELECT job.id, run.member, run.claimed_at FROM (SELECT pk FROM held WHERE queue = ?1 AND task = ?2 LIMIT ?3) AS some
CROSS JOIN job ON job.pk = some.pk
CROSS JOIN run ON run.last = (SELECT min(last) FROM run WHERE last >= some.pk);

-- name: holders_of_key
SELECT job.id, run.member, run.claimed_at FROM (SELECT pk FROM held WHERE queue = ?1 AND key = ?2 LIMIT ?3) AS some
CROSS JOIN job ON job.pk = some.pk
CROSS JOIN run ON run.last = (SELECT min(last) FROM run WHERE last >= some.pk);
