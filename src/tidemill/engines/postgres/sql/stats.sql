-- Statistics. $1 step, $2 first, $3 until, $4 queue name or NULL for all.

-- name: packed
-- $5 grain, $6 task or NULL for all. Each row is one step.
SELECT s.queue, s.task, s.at, array_agg((s.count << 7) | s.cell) FROM (
    SELECT queue, task, minute - (minute - $2::bigint) % $1::bigint AS at, c & 127 AS cell, sum(c >> 7)::bigint AS count
    FROM (
        SELECT queue, task, minute, packed FROM {schema}.stat
        WHERE grain = $5::smallint AND minute >= $2::bigint AND minute < $3::bigint
          AND ($4::text IS NULL OR queue = $4::text) AND ($6::text IS NULL OR task = $6::text)
        UNION ALL
        SELECT queue, task, minute, packed FROM {schema}.stat_new
        WHERE grain = $5::smallint AND minute >= $2::bigint AND minute < $3::bigint
          AND ($4::text IS NULL OR queue = $4::text) AND ($6::text IS NULL OR task = $6::text)
    ) AS found CROSS JOIN LATERAL unnest(packed) AS c
    GROUP BY 1, 2, 3, 4
) AS s
GROUP BY 1, 2, 3;

-- name: finished
SELECT queue, minute - (minute - $2::bigint) % $1::bigint, sum(completed)::bigint, sum(failed)::bigint, sum(dead)::bigint,
    sum(cancelled)::bigint FROM (
    SELECT queue, minute, completed, failed, dead, cancelled FROM {schema}.finished
    WHERE minute >= $2::bigint AND minute < $3::bigint
    UNION ALL
    SELECT queue, minute, completed, failed, dead, cancelled FROM {schema}.finished_new
) AS f
WHERE minute >= $2::bigint AND minute < $3::bigint AND ($4::text IS NULL OR queue = $4::text)
GROUP BY 1, 2;

-- name: samples
-- Each row is one step. The stock is that of the last sample.
SELECT queue, minute - (minute - $2::bigint) % $1::bigint, (array_agg(stock ORDER BY minute DESC))[1],
    sum(arrived)::bigint, max(oldest_ready) FROM {schema}.sample
WHERE minute >= $2::bigint AND minute < $3::bigint AND ($4::text IS NULL OR queue = $4::text)
GROUP BY 1, 2;
