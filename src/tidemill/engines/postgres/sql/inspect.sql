-- Counts, series, logs.

-- name: get
SELECT shown.*, ARRAY(
    SELECT json_build_array(f.attempt, f.number, f.member, f.claimed_at, f.started_at, f.ended_at, f.retry_in,
                            convert_from(f.said, 'UTF8')::json)::text
    FROM {schema}.failure AS f WHERE f.job = shown.id ORDER BY f.number
)
FROM {schema}.shown WHERE id = ANY ($1::bytea[]) AND form < 2;

-- name: counts
-- States are counted up to $1; the few running jobs all at once.
WITH name AS (SELECT name FROM {schema}.queue UNION SELECT name FROM {schema}.queue_new),
    running AS (SELECT queue, count(*) AS count FROM {schema}.job WHERE token IS NOT NULL GROUP BY queue)
SELECT name.name,
    (SELECT count(*) FROM (SELECT 1 FROM {schema}.job WHERE state = 0 AND queue = name.name LIMIT $1::bigint) AS s),
    (SELECT count(*) FROM (SELECT 1 FROM {schema}.job WHERE state = 1 AND queue = name.name LIMIT $1::bigint) AS s),
    (SELECT count(*) FROM (SELECT 1 FROM {schema}.job WHERE state = 2 AND queue = name.name LIMIT $1::bigint) AS s),
    coalesce((SELECT count FROM running WHERE running.queue = name.name), 0),
    (SELECT count(*) FROM (SELECT 1 FROM {schema}.job
        WHERE state >= 4 AND state = 4 AND form < 2 AND queue = name.name LIMIT $1::bigint) AS s),
    (SELECT count(*) FROM (SELECT 1 FROM {schema}.job
        WHERE state >= 4 AND state = 5 AND form < 2 AND queue = name.name LIMIT $1::bigint) AS s),
    (SELECT count(*) FROM (SELECT 1 FROM {schema}.job
        WHERE state >= 4 AND state = 6 AND form < 2 AND queue = name.name LIMIT $1::bigint) AS s)
FROM name ORDER BY name.name;

-- name: oldest
SELECT name, ready_at FROM {schema}.oldest_ready_v1($1::integer);

-- name: tallies
SELECT queue, state, count, coalesce($1::bigint, {schema}.instant_v1()) - counted_at FROM {schema}.tally;

-- name: recount
-- $1 queue, $2 state; the index is walked once, by one process at a time.
INSERT INTO {schema}.tally (queue, state, count, counted_at)
SELECT $1::text, $2::smallint, count(*), {schema}.instant_v1() FROM {schema}.job
WHERE queue = $1::text AND state = $2::smallint AND form < 2
ON CONFLICT (queue, state) DO UPDATE SET count = excluded.count, counted_at = excluded.counted_at;

-- name: groups
-- The dead-letter groups of queue $1 behind ($2, $3), of task $4 alone unless it is NULL: the index is skipped through.
-- Each is counted up to $5. $6: the most groups.
WITH RECURSIVE found AS (
    (SELECT task, fingerprint FROM {schema}.dead
     WHERE queue = $1::text AND (task, fingerprint) > ($2::text, $3::text) ORDER BY task, fingerprint LIMIT 1)
    UNION ALL
    (SELECT next.task, next.fingerprint FROM found CROSS JOIN LATERAL (
        SELECT d.task, d.fingerprint FROM {schema}.dead AS d
        WHERE d.queue = $1::text AND (d.task, d.fingerprint) > (found.task, found.fingerprint)
        ORDER BY d.task, d.fingerprint LIMIT 1
     ) AS next WHERE $4::text IS NULL OR found.task = $4::text)
), page AS (
    SELECT task, fingerprint FROM found WHERE $4::text IS NULL OR task = $4::text LIMIT $6::bigint
)
SELECT page.task, page.fingerprint,
    (SELECT count(*) FROM (
        SELECT 1 FROM {schema}.dead AS d WHERE d.queue = $1::text AND d.task = page.task AND d.fingerprint = page.fingerprint
        LIMIT $5::bigint) AS s),
    (SELECT d.ended_at FROM {schema}.dead AS d
     WHERE d.queue = $1::text AND d.task = page.task AND d.fingerprint = page.fingerprint
     ORDER BY d.ended_at, d.born LIMIT 1),
    sample.ended_at, sample.job, sample.said
FROM page CROSS JOIN LATERAL (
    SELECT d.job, d.ended_at, (
        SELECT f.said FROM {schema}.failure AS f WHERE f.job = d.job ORDER BY f.number DESC LIMIT 1
    ) AS said
    FROM {schema}.dead AS d WHERE d.queue = $1::text AND d.task = page.task AND d.fingerprint = page.fingerprint
    ORDER BY d.ended_at DESC, d.born DESC LIMIT 1
) AS sample;

-- name: group_tallies
SELECT task, fingerprint, count, coalesce($2::bigint, {schema}.instant_v1()) - counted_at FROM {schema}.group_tally
WHERE queue = $1::text;

-- name: recount_group
INSERT INTO {schema}.group_tally (queue, task, fingerprint, count, counted_at)
SELECT $1::text, $2::text, $3::text, count(*), {schema}.instant_v1() FROM {schema}.dead
WHERE queue = $1::text AND task = $2::text AND fingerprint = $3::text
ON CONFLICT (queue, task, fingerprint) DO UPDATE SET count = excluded.count, counted_at = excluded.counted_at;

-- name: forget_group_tallies
-- Of groups that are small again.
DELETE FROM {schema}.group_tally AS t WHERE NOT EXISTS (
    SELECT 1 FROM {schema}.dead AS d
    WHERE d.queue = t.queue AND d.task = t.task AND d.fingerprint = t.fingerprint OFFSET $1::bigint);

-- name: window
-- $1 now or NULL, $2 the window less the present minute, in whole minutes.
WITH moment AS (SELECT coalesce($1::bigint, {schema}.instant_v1()) AS now)
SELECT queue, sum(completed)::bigint, sum(failed)::bigint, sum(dead)::bigint, sum(cancelled)::bigint FROM (
    SELECT queue, minute, completed, failed, dead, cancelled FROM {schema}.finished
    UNION ALL
    SELECT queue, minute, completed, failed, dead, cancelled FROM {schema}.finished_new
) AS f, moment
WHERE minute >= moment.now - moment.now % 60000000 - $2::bigint AND minute <= moment.now GROUP BY queue;

-- name: series
-- $1 step, $2 first, $3 until, $4 queue name or NULL for all
SELECT minute - minute % $1::bigint, sum(completed)::bigint, sum(failed)::bigint, sum(dead)::bigint,
    sum(cancelled)::bigint FROM (
    SELECT queue, minute, completed, failed, dead, cancelled FROM {schema}.finished
    WHERE minute >= $2::bigint AND minute < $3::bigint
    UNION ALL
    SELECT queue, minute, completed, failed, dead, cancelled FROM {schema}.finished_new
) AS f
WHERE minute >= $2::bigint AND minute < $3::bigint AND ($4::text IS NULL OR queue = $4::text)
GROUP BY 1;

-- name: log
SELECT fence, number, at, level, message FROM {schema}.log
WHERE job = $1 AND EXISTS (SELECT 1 FROM {schema}.job WHERE id = $1 AND form < 2)
ORDER BY fence, number LIMIT $2::bigint OFFSET $3::bigint;

-- name: checkpoints
SELECT name, value FROM {schema}.checkpoint
WHERE job = $1 AND EXISTS (SELECT 1 FROM {schema}.job WHERE id = $1 AND form < 2) ORDER BY number;

-- name: audit
SELECT number, at, by, action, target, detail FROM {schema}.audit
WHERE $1::bigint IS NULL OR number < $1::bigint ORDER BY number DESC LIMIT $2::bigint;

-- name: queues
SELECT name FROM {schema}.queue UNION SELECT name FROM {schema}.queue_new ORDER BY name;
