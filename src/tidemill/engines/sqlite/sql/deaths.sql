-- Jobs that die and have a handler.

-- name: dying
SELECT
    job.on_dead, job.attempts, job.crashes, ifnull(more.replays, 0), job.codec, job.body,
    (SELECT record FROM failure WHERE failure.job = job.pk ORDER BY number DESC LIMIT 1),
    (SELECT entry FROM task WHERE task.name = job.on_dead)
FROM job LEFT JOIN more ON more.pk = job.pk
WHERE job.pk = ? AND job.on_dead IS NOT NULL;
