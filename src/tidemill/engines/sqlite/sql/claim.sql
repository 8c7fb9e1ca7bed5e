-- Taking jobs.

-- name: admit
-- The member, and the claimant if it is known.
SELECT member.name, claimant.pk, claimant.number, claimant.retired_at, claimant.member
FROM member LEFT JOIN claimant ON claimant.id = ?1
WHERE member.id = ?2;

-- name: add_claimant
INSERT INTO claimant (id, member, number) VALUES (?, ?, ?) RETURNING pk;

-- name: number_claim
UPDATE claimant SET number = ? WHERE pk = ?;

-- name: front
-- The front of a plain lane. odd: whether there is anything in the columns that are not read here.
SELECT job.pk, job.seq, job.id, job.task, job.max_attempts, job.codec, job.body, job.created_at, job.ready_at,
    coalesce(job.expires_at, job.headers, job.key, job.timeout, job.retry, job.on_dead, job.schedule,
             CASE WHEN job.attempts + job.crashes + job.snoozes THEN 1 END)
FROM ready CROSS JOIN job ON job.pk BETWEEN ready.first - ready.ahead AND ready.last - ready.ahead
WHERE ready.queue = ?1 AND ready.priority = ?2 AND ready.kind = 0 AND ready.lane = ''
ORDER BY ready.last, job.pk LIMIT ?3;

-- name: odd
SELECT pk, attempts, crashes, expires_at, headers, key, timeout, retry, on_dead, schedule, snoozes
FROM job WHERE pk IN (SELECT value FROM json_each(?));

-- name: take_whole
-- The ranges at the front of a plain lane that end with this seq or before.
DELETE FROM ready WHERE queue = ? AND priority = ? AND kind = 0 AND lane = '' AND last <= ?;

-- name: take_front
-- The part up to this seq of the range that is now the first.
UPDATE ready SET first = ?3 + 1
WHERE queue = ?1 AND priority = ?2 AND kind = 0 AND lane = '' AND first <= ?3 AND last = (
    SELECT min(last) FROM ready WHERE queue = ?1 AND priority = ?2 AND kind = 0 AND lane = ''
);
