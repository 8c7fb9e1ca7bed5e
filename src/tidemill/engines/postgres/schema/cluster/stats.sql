-- Statistics: waiting and run times by the minute, and samples of queues.

-- Append a batch of a heartbeat. p_packed: each row's numbers as the text of an array.
CREATE FUNCTION add_stats_v1(p_grains integer[], p_queues text[], p_tasks text[], p_packed text[], p_now bigint)
RETURNS void LANGUAGE sql AS $$
    INSERT INTO stat_new (minute, grain, queue, task, packed)
    SELECT p_now - p_now % 60000000, s.grain, s.queue, s.task, s.packed::bigint[]
    FROM unnest(p_grains, p_queues, p_tasks, p_packed) AS s (grain, queue, task, packed)
$$;

-- The sum of packed histograms: the counts of equal cells are added.
CREATE FUNCTION add_packed_v1(p_one bigint[], p_other bigint[]) RETURNS bigint[] LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(array_agg((s.count << 7) | s.cell ORDER BY s.cell), '{}')
    FROM (SELECT n & 127 AS cell, sum(n >> 7)::bigint AS count FROM unnest(p_one || p_other) AS n GROUP BY 1) AS s
$$;

-- Bring the appended rows of minutes that are over into their table: a bounded number of minutes, one process at a time. Of
-- a minute 200 tasks keep rows of their own: those that have one, then those with most jobs.
CREATE FUNCTION fold_stats_v1(p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_minute bigint;
    v_room integer;
BEGIN
    IF NOT pg_try_advisory_xact_lock(lock_v1('fold stats', '')) THEN
        RETURN;
    END IF;
    FOR n IN 1 .. 60 LOOP
        v_minute := (SELECT min(minute) FROM stat_new);
        EXIT WHEN v_minute IS NULL OR v_minute > p_now - 60000000 - p_now % 60000000;
        v_room := 200 - (SELECT count(*) FROM stat WHERE grain = 1 AND minute = v_minute AND task <> 'other tasks');
        WITH gone AS (
            DELETE FROM stat_new WHERE minute = v_minute RETURNING grain, queue, task, packed
        ), cells AS (
            SELECT g.grain, g.queue, g.task, c & 127 AS cell, sum(c >> 7)::bigint AS count
            FROM gone AS g CROSS JOIN LATERAL unnest(g.packed) AS c GROUP BY 1, 2, 3, 4
        ), rows AS (
            SELECT c.grain, c.queue, c.task, sum(c.count) AS jobs, array_agg((c.count << 7) | c.cell) AS packed,
                c.grain = 0 OR c.task = 'other tasks' OR EXISTS (
                    SELECT 1 FROM stat AS s
                    WHERE s.grain = c.grain AND s.minute = v_minute AND s.queue = c.queue AND s.task = c.task
                ) AS stays
            FROM cells AS c GROUP BY c.grain, c.queue, c.task
        ), ranked AS (
            SELECT r.*, row_number() OVER (PARTITION BY r.stays ORDER BY r.jobs DESC, r.queue, r.task) AS place
            FROM rows AS r
        ), kept AS (
            SELECT r.grain, r.queue, CASE WHEN r.stays OR r.place <= v_room THEN r.task ELSE 'other tasks' END AS task,
                c & 127 AS cell, sum(c >> 7)::bigint AS count
            FROM ranked AS r CROSS JOIN LATERAL unnest(r.packed) AS c GROUP BY 1, 2, 3, 4
        )
        INSERT INTO stat (minute, grain, queue, task, packed)
        SELECT v_minute, s.grain, s.queue, s.task, array_agg((s.count << 7) | s.cell ORDER BY s.cell) FROM kept AS s
        GROUP BY s.grain, s.queue, s.task
        ON CONFLICT (grain, minute, queue, task) DO UPDATE SET packed = add_packed_v1(stat.packed, excluded.packed);
    END LOOP;
END $$;

-- Delete what is older than this, a bounded number of rows.
CREATE FUNCTION forget_stats_v1(p_before bigint) RETURNS void LANGUAGE sql AS $$
    DELETE FROM stat WHERE ctid = ANY (ARRAY(SELECT ctid FROM stat WHERE grain = 0 AND minute < p_before LIMIT 1000));
    DELETE FROM stat WHERE ctid = ANY (ARRAY(SELECT ctid FROM stat WHERE grain = 1 AND minute < p_before LIMIT 5000));
    DELETE FROM sample WHERE ctid = ANY (ARRAY(SELECT ctid FROM sample WHERE minute < p_before LIMIT 1000));
$$;

-- How queues stood at the end of a minute; false if that was noted before.
CREATE FUNCTION sample_v1(p_minute bigint, p_queues text[], p_stocks bigint[], p_arrived bigint[], p_oldest bigint[])
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(lock_v1('sample', ''));
    IF EXISTS (SELECT 1 FROM sample WHERE minute = p_minute) THEN
        RETURN false;
    END IF;
    INSERT INTO sample (minute, queue, stock, arrived, oldest_ready)
    SELECT p_minute, s.* FROM unnest(p_queues, p_stocks, p_arrived, p_oldest) AS s (queue, stock, arrived, oldest_ready)
    ON CONFLICT DO NOTHING;
    RETURN true;
END $$;

-- Since when the oldest of the first jobs of each queue's lanes is ready. The order of ready jobs is skipped through, at most
-- p_lanes of a queue. A loop, so that each step is planned alone: as one recursive query it took 1.8 s for 1,000 lanes of
-- 50,000 jobs, as a loop 0.04 s.
CREATE FUNCTION oldest_ready_v1(p_lanes integer) RETURNS TABLE (name text, ready_at bigint) LANGUAGE plpgsql STABLE AS $$
DECLARE
    r record;
BEGIN
    FOR name IN SELECT q.name FROM queue AS q UNION SELECT n.name FROM queue_new AS n LOOP
        ready_at := NULL;
        SELECT j.priority, j.suspect, j.lane, j.ready_at AS moment INTO r FROM job AS j
        WHERE j.state = 2 AND j.queue = name ORDER BY j.queue, j.priority, j.suspect, j.lane, j.seq LIMIT 1;
        FOR n IN 1 .. p_lanes LOOP
            EXIT WHEN r.priority IS NULL;
            ready_at := least(ready_at, r.moment);
            SELECT j.priority, j.suspect, j.lane, j.ready_at AS moment INTO r FROM job AS j
            WHERE j.state = 2 AND j.queue = name AND (j.priority, j.suspect, j.lane) > (r.priority, r.suspect, r.lane)
            ORDER BY j.queue, j.priority, j.suspect, j.lane, j.seq LIMIT 1;
        END LOOP;
        RETURN NEXT;
    END LOOP;
END $$;
