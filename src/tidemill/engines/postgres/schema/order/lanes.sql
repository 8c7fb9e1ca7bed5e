-- Lanes: the jobs of one queue, priority and group, in the order of `seq`. The table is written under the queue's exclusive
-- lock alone.

-- Put announced lanes into the table; open gates of keys whose time has come or whose holder is gone.
CREATE FUNCTION fold_lanes_v1(q queue, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_keys text[];
BEGIN
    IF EXISTS (SELECT 1 FROM freed WHERE queue = q.name) THEN
        WITH gone AS (
            DELETE FROM freed WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM freed WHERE queue = q.name LIMIT 10000 FOR UPDATE SKIP LOCKED
            )) RETURNING key
        )
        SELECT array_agg(DISTINCT key) INTO v_keys FROM gone;
        WITH opened AS (
            DELETE FROM parked WHERE queue = q.name AND key = ANY (v_keys) AND wake_at IS NULL RETURNING key
        )
        UPDATE lane SET parked = false FROM opened WHERE lane.queue = q.name AND lane.key = opened.key;
    END IF;
    IF EXISTS (SELECT 1 FROM parked WHERE queue = q.name AND wake_at <= p_now) THEN
        WITH opened AS (DELETE FROM parked WHERE queue = q.name AND wake_at <= p_now RETURNING key)
        UPDATE lane SET parked = false FROM opened WHERE lane.queue = q.name AND lane.key = opened.key;
    END IF;
    IF EXISTS (SELECT 1 FROM lane_new WHERE queue = q.name) THEN
        WITH gone AS (
            DELETE FROM lane_new WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM lane_new WHERE queue = q.name LIMIT 10000 FOR UPDATE SKIP LOCKED
            )) RETURNING priority, suspect, lane, task, key
        )
        INSERT INTO lane (queue, priority, suspect, lane, task, key, parked)
        SELECT DISTINCT q.name, g.priority, g.suspect, g.lane, g.task, g.key,
            q.key_limited AND EXISTS (SELECT 1 FROM parked AS p WHERE p.queue = q.name AND p.key = g.key)
        FROM gone AS g
        ON CONFLICT DO NOTHING;
    END IF;
END $$;

-- The queue's shape has changed: move up to 1,000 waiting jobs to their new lanes, of up to 10,000 that are checked, from the
-- position where the last claim stopped. True when all have moved.
CREATE FUNCTION reshape_v1(q queue) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    r record;
    v_scanned integer := 0;
    v_moved integer := 0;
    v_at jsonb;
BEGIN
    FOR r IN
        SELECT id, priority, suspect, lane, seq, task, key, group_of_v1(q.keyed, q.tasks, task, key) AS target FROM job
        WHERE state = 2 AND queue = q.name AND (priority, suspect, lane, seq) > (
            coalesce((q.stale ->> 0)::smallint, -1::smallint), coalesce((q.stale ->> 1)::boolean, false),
            coalesce(q.stale ->> 2, ''), coalesce((q.stale ->> 3)::bigint, 0))
        ORDER BY priority, suspect, lane, seq LIMIT 10000
    LOOP
        v_scanned := v_scanned + 1;
        v_at := jsonb_build_array(r.priority, r.suspect, r.lane, r.seq);
        IF r.lane <> r.target THEN
            UPDATE job SET lane = r.target, back = true WHERE id = r.id AND state::integer = 2;
            v_moved := v_moved + 1;
        END IF;
        IF r.target <> '' THEN
            INSERT INTO lane_new (queue, priority, suspect, lane, task, key)
            SELECT q.name, r.priority, r.suspect, r.target, CASE WHEN q.tasks ? r.task THEN r.task ELSE '' END,
                CASE WHEN q.keyed THEN r.key ELSE '' END
            WHERE NOT EXISTS (SELECT 1 FROM lane WHERE queue = q.name AND priority = r.priority
                              AND suspect = r.suspect AND lane = r.target);
        END IF;
        EXIT WHEN v_moved = 1000;
    END LOOP;
    IF v_moved < 1000 AND v_scanned < 10000 THEN
        UPDATE queue SET stale = NULL WHERE name = q.name;
        RETURN true;
    END IF;
    UPDATE queue SET stale = v_at WHERE name = q.name;
    RETURN false;
END $$;

-- Delete lanes that were read to their end, unless a job is ready there after all.
CREATE FUNCTION close_lanes_v1(p_queue text, p_priority smallint, p_lanes text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM lane AS e WHERE queue = p_queue AND priority = p_priority AND lane = ANY (p_lanes) AND NOT EXISTS (
        SELECT 1 FROM job AS j WHERE j.state = 2 AND j.queue = p_queue AND j.priority = p_priority
        AND j.suspect = e.suspect AND j.lane = e.lane);
END $$;

-- A lane's next jobs by seq, after one: those that are marked below the cursor, those from the cursor on, and suspects if
-- the claim may take some. STABLE, so that it becomes a part of the caller's statement and is planned with it: a SQL
-- function that is not is planned anew by every call.
CREATE FUNCTION lane_jobs_v1(
    p_queue text, p_priority smallint, p_lane text, p_after bigint, p_cursor bigint, p_most integer,
    p_suspects boolean, p_taken tid[], p_now bigint
) RETURNS TABLE (at tid, seq bigint, suspect boolean, task text, key text) LANGUAGE sql STABLE AS $$
    SELECT at, seq, suspect, task, key FROM (
        (SELECT job.ctid AS at, job.seq, job.suspect, job.task, job.key FROM job
         WHERE back AND queue = p_queue AND priority = p_priority AND NOT suspect AND lane = p_lane
           AND seq > p_after AND seq < p_cursor AND (expires_at IS NULL OR expires_at > p_now)
           AND job.ctid <> ALL (p_taken)
         ORDER BY job.seq LIMIT p_most)
        UNION ALL
        (SELECT job.ctid, job.seq, job.suspect, job.task, job.key FROM job
         WHERE state = 2 AND queue = p_queue AND priority = p_priority AND NOT suspect AND lane = p_lane
           AND seq > p_after AND seq >= p_cursor AND (expires_at IS NULL OR expires_at > p_now)
           AND job.ctid <> ALL (p_taken)
         ORDER BY job.seq LIMIT p_most)
        UNION ALL
        (SELECT job.ctid, job.seq, job.suspect, job.task, job.key FROM job
         WHERE p_suspects AND suspect AND state::integer = 2 AND queue = p_queue AND priority = p_priority AND lane = p_lane
           AND seq > p_after AND (expires_at IS NULL OR expires_at > p_now) AND job.ctid <> ALL (p_taken)
         ORDER BY job.seq LIMIT p_most)
    ) AS part
    ORDER BY seq LIMIT p_most
$$;
