-- Why a job is where it is. Each statement finds what it counts at an end of an index, and stops at a bound.

-- name: now
SELECT coalesce($1::bigint, {schema}.instant_v1());

-- name: queue
SELECT options, paused_at, paused_by, paused_why FROM {schema}.queue WHERE name = $1::text;

-- name: task_pause
SELECT paused_at, paused_by, paused_why FROM {schema}.paused_task WHERE name = $1::text;

-- name: members
SELECT info, since, heartbeat_at, steady_since, 0 FROM {schema}.member;

-- name: ahead
-- $1 queue, $2 priority, $3 suspect, $4 lane, $5 the job's seq, $6 the bound. From the job backwards: what was taken from
-- the front of a lane, and is not vacuumed yet, is met only when nothing else is left.
SELECT count(*) FROM (
    SELECT 1 FROM {schema}.job
    WHERE state = 2 AND queue = $1::text AND priority = $2::smallint AND suspect = $3::boolean AND lane = $4::text
      AND seq < $5::bigint AND NOT aside
    ORDER BY seq DESC LIMIT $6::bigint
) AS found;

-- name: better
-- Those that stand aside hold nobody back.
SELECT count(*) FROM (
    SELECT 1 FROM {schema}.job
    WHERE state = 2 AND queue = $1::text AND priority < $2::smallint AND NOT aside LIMIT $3::bigint
) AS found;

-- name: parents
SELECT job.id, job.state FROM (SELECT parent FROM {schema}.wait WHERE child = $1::bytea LIMIT $2::bigint) AS found
JOIN {schema}.job ON job.id = found.parent;

-- name: held_by_queue
-- $2 is the empty name of a queue's own gate.
SELECT count(*) FROM (
    SELECT 1 FROM {schema}.job WHERE gated AND queue = $1::text AND $2::text = '' LIMIT $3::bigint
) AS found;

-- name: held_by_task
-- The condition of the index `job_held_task`.
SELECT count(*) FROM (
    SELECT 1 FROM {schema}.job WHERE gated::integer = 1 AND queue = $1::text AND task = $2::text LIMIT $3::bigint
) AS found;

-- name: held_by_key
SELECT count(*) FROM (
    SELECT 1 FROM {schema}.job WHERE gated AND queue = $1::text AND key = $2::text LIMIT $3::bigint
) AS found;

-- name: holders_of_queue
SELECT id, member, claimed_at FROM {schema}.job WHERE gated AND queue = $1::text AND $2::text = '' LIMIT $3::bigint;

-- name: holders_of_task
SELECT id, member, claimed_at FROM {schema}.job WHERE gated::integer = 1 AND queue = $1::text AND task = $2::text LIMIT $3::bigint;

-- name: holders_of_key
SELECT id, member, claimed_at FROM {schema}.job WHERE gated AND queue = $1::text AND key = $2::text LIMIT $3::bigint;

-- name: starts
SELECT step, count FROM {schema}.start WHERE queue = $1::text AND kind = $2::text AND name = $3::text AND step > $4::bigint;
