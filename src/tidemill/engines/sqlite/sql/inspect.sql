-- Counts, series, logs.

-- name: queues
SELECT pk, name FROM queue ORDER BY name;

-- name: next_group
-- The first dead-letter group of a queue behind these: the index is skipped through, not walked.
SELECT task, fingerprint FROM dead WHERE queue = ? AND (task, fingerprint) > (?, ?)
ORDER BY task, fingerprint LIMIT 1;

-- name: group_count
SELECT count(*), min(ended_at) FROM dead WHERE queue = ? AND task = ? AND fingerprint = ?;

-- name: group_sample
SELECT job.id, dead.ended_at, failure.record FROM dead
JOIN job ON job.pk = dead.pk
LEFT JOIN failure ON failure.job = dead.pk
WHERE dead.queue = ? AND dead.task = ? AND dead.fingerprint = ?
ORDER BY dead.ended_at DESC, dead.pk DESC, failure.number DESC LIMIT 1;

-- name: tallies
SELECT queue, state, count FROM tally;

-- name: next_head
-- The next lane of a queue that has ready jobs, and since when its first one is ready.
SELECT ready.priority, ready.kind, ready.lane, job.ready_at
FROM ready JOIN job ON job.pk = ready.first - ready.ahead
WHERE ready.queue = ?1 AND (ready.priority, ready.kind, ready.lane) > (?2, ?3, ?4)
ORDER BY ready.priority, ready.kind, ready.lane, ready.last LIMIT 1;

-- name: window
SELECT queue, sum(completed), sum(failed), sum(dead), sum(cancelled) FROM finished
WHERE minute >= ? AND minute <= ? GROUP BY queue;

-- name: series
-- ?1 step, ?2 first, ?3 until, ?4 queue name or NULL for all
SELECT minute - minute % ?1, sum(completed), sum(failed), sum(dead), sum(cancelled) FROM finished
WHERE minute >= ?2 AND minute < ?3 AND (?4 IS NULL OR queue = (SELECT pk FROM queue WHERE name = ?4))
GROUP BY 1;

-- name: log
SELECT fence, number, at, level, message FROM log
WHERE job = (SELECT pk FROM job_now WHERE id = ? AND form < 2) ORDER BY fence, number LIMIT ? OFFSET ?;

-- name: checkpoints
SELECT name, value FROM checkpoint WHERE job = (SELECT pk FROM job_now WHERE id = ? AND form < 2) ORDER BY number;

-- name: audit
SELECT number, at, by, action, target, detail FROM audit
WHERE ?1 IS NULL OR number < ?1 ORDER BY number DESC LIMIT ?2;
