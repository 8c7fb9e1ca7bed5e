-- Lanes: the jobs of one queue, priority and group, in the order of `seq`. The table is written under the queue's exclusive
-- lock alone.

-- The lanes of these keys are parked, or open again. Key by key (OFFSET 0), and not by lane_open: a plan that was made while the
-- table was nearly empty read all lanes of the queue.
CREATE FUNCTION mark_lanes_v1(p_queue text, p_keys text[], p_parked boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE lane SET parked = p_parked WHERE ctid = ANY (ARRAY(
        SELECT e.ctid FROM unnest(p_keys) AS u (key)
        CROSS JOIN LATERAL (
            SELECT ctid FROM lane WHERE queue = p_queue AND lane.key = u.key AND parked IS DISTINCT FROM p_parked OFFSET 0
        ) AS e));
END $$;

-- Gates are open again: so are the lanes of their keys. Lanes of a limited task are not marked; a choice passes over the tasks
-- whose gates are parked.
CREATE FUNCTION open_gates_v1(p_queue text, p_kinds text[], p_names text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM parked WHERE ctid = ANY (ARRAY(
        SELECT e.ctid FROM unnest(p_kinds, p_names) AS u (kind, name)
        CROSS JOIN LATERAL (
            SELECT ctid FROM parked WHERE queue = p_queue AND parked.kind = u.kind AND parked.name = u.name OFFSET 0
        ) AS e));
    PERFORM mark_lanes_v1(p_queue, ARRAY(
        SELECT u.name FROM unnest(p_kinds, p_names) AS u (kind, name) WHERE u.kind = 'key'), false);
END $$;

-- The next claim measures every gate of a queue anew.
CREATE FUNCTION open_all_gates_v1(p_queue text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM parked WHERE queue = p_queue;
    UPDATE lane SET parked = false WHERE queue = p_queue AND parked;
END $$;

-- Open the gates whose time has come, or of which a holder is gone. False: 10,000 holders were gone, and there may be more.
CREATE FUNCTION fold_gates_v1(q queue, p_now bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_tasks text[];
    v_keys text[];
    v_kinds text[];
    v_names text[];
    v_folded integer := 0;
BEGIN
    IF EXISTS (SELECT 1 FROM freed WHERE queue = q.name) THEN
        WITH gone AS (
            DELETE FROM freed WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM freed WHERE queue = q.name LIMIT 10000 FOR UPDATE SKIP LOCKED
            )) RETURNING task, key
        )
        SELECT array_agg(DISTINCT task), array_agg(DISTINCT key), count(*) INTO v_tasks, v_keys, v_folded FROM gone;
        SELECT array_agg(p.kind), array_agg(p.name) INTO v_kinds, v_names
        FROM (
            SELECT 'queue' AS kind, '' AS name UNION ALL SELECT 'task', unnest(v_tasks) UNION ALL SELECT 'key', unnest(v_keys)
        ) AS u
        CROSS JOIN LATERAL (
            SELECT kind, name FROM parked
            WHERE queue = q.name AND parked.kind = u.kind AND parked.name = u.name AND wake_at IS NULL OFFSET 0
        ) AS p;
        IF v_kinds IS NOT NULL THEN
            PERFORM open_gates_v1(q.name, v_kinds, v_names);
        END IF;
    END IF;
    -- ordered as in parked_wake, so that no other index will do
    SELECT array_agg(p.kind), array_agg(p.name) INTO v_kinds, v_names
    FROM (SELECT kind, name FROM parked WHERE queue = q.name AND wake_at <= p_now ORDER BY wake_at) AS p;
    IF v_kinds IS NOT NULL THEN
        PERFORM open_gates_v1(q.name, v_kinds, v_names);
    END IF;
    RETURN v_folded < 10000;
END $$;

-- Put announced lanes into the table, up to 10,000 announcements. An announcement may be of former options: what it says of the
-- task counts only if that is limited now. False: there were as many, and may be more.
CREATE FUNCTION fold_lanes_v1(q queue) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_folded integer;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM lane_new WHERE queue = q.name) THEN
        RETURN true;
    END IF;
    WITH gone AS (
        DELETE FROM lane_new WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM lane_new WHERE queue = q.name LIMIT 10000 FOR UPDATE SKIP LOCKED
        )) RETURNING priority, suspect, lane, task, key, first
    ), opened AS (
        INSERT INTO lane (queue, priority, suspect, lane, task, key, first, parked)
        SELECT q.name, g.priority, g.suspect, g.lane, CASE WHEN q.tasks ? min(g.task) THEN min(g.task) ELSE '' END, min(g.key),
            min(g.first), q.key_limited AND EXISTS (
                SELECT 1 FROM parked AS p WHERE p.queue = q.name AND p.kind = 'key' AND p.name = min(g.key) OFFSET 0)
        FROM gone AS g GROUP BY g.priority, g.suspect, g.lane
        ON CONFLICT (queue, priority, suspect, lane) DO UPDATE SET first = excluded.first WHERE lane.first > excluded.first
    )
    SELECT count(*) INTO v_folded FROM gone;
    RETURN v_folded < 10000;
END $$;

-- Open the lanes without a group in which a job is ready: nobody may have announced them.
CREATE FUNCTION open_plain_lanes_v1(p_queue text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO lane (queue, priority, suspect, lane, task, key, first)
    SELECT p_queue, n / 2, n % 2 = 1, '', '', '', j.seq FROM generate_series(0, 21) AS n
    CROSS JOIN LATERAL (
        SELECT seq FROM job WHERE state = 2 AND queue = p_queue AND priority = (n / 2)::smallint AND suspect = (n % 2 = 1)
            AND lane = '' ORDER BY seq LIMIT 1
    ) AS j
    ON CONFLICT (queue, priority, suspect, lane) DO UPDATE SET first = excluded.first WHERE lane.first > excluded.first;
END $$;

-- Whether a ready job of the queue stands in a lane with a group.
CREATE FUNCTION has_groups_v1(p_queue text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1 FROM generate_series(0, 21) AS n
        CROSS JOIN LATERAL (
            SELECT 1 FROM job WHERE state = 2 AND queue = p_queue AND priority = (n / 2)::smallint AND suspect = (n % 2 = 1)
                AND lane > '' LIMIT 1
        ) AS j);
END $$;

-- The queue's shape has changed: move up to 1,000 waiting jobs to their new lanes, of up to 10,000 that are checked, from the
-- position where the last claim stopped. True when all have moved.
CREATE FUNCTION reshape_v1(q queue) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    r record;
    v_scanned integer := 0;
    v_moved integer := 0;
    v_at jsonb;
    v_lane text;
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
            UPDATE job SET lane = r.target, back = true, aside = false WHERE id = r.id AND state::integer = 2;
            v_moved := v_moved + 1;
        END IF;
        IF q.laned AND v_lane IS DISTINCT FROM concat_ws(chr(31), r.priority, r.suspect, r.target) THEN  -- in the order of seq
            INSERT INTO lane (queue, priority, suspect, lane, task, key, first)
            VALUES (q.name, r.priority, r.suspect, r.target, CASE WHEN q.tasks ? r.task THEN r.task ELSE '' END,
                    CASE WHEN q.keyed THEN r.key ELSE '' END, r.seq)
            ON CONFLICT (queue, priority, suspect, lane) DO UPDATE SET first = excluded.first
            WHERE lane.first > excluded.first;
            v_lane := concat_ws(chr(31), r.priority, r.suspect, r.target);
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

-- A choice has read these lanes to their end: delete those in which no job is ready. p_taken: chosen by this claim. Of a lane
-- in which one is ready after all (below this process's cursor, or expired), `first` moves on to it. So what was ready once
-- is walked once, also beside a held snapshot, which keeps all of it in the index.
CREATE FUNCTION close_lanes_v1(p_queue text, p_priority smallint, p_lanes text[], p_taken tid[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    r lane;
    v_first bigint;
BEGIN
    FOR r IN SELECT e.* FROM unnest(p_lanes) AS u (lane)
             JOIN lane AS e ON e.queue = p_queue AND e.priority = p_priority AND e.lane = ANY (ARRAY[u.lane]) LOOP
        SELECT j.seq INTO v_first FROM job AS j
        WHERE j.state = 2 AND j.queue = p_queue AND j.priority = p_priority AND j.suspect = r.suspect AND j.lane = r.lane
          AND j.seq >= r.first AND j.ctid <> ALL (p_taken)
        ORDER BY j.seq LIMIT 1;
        IF FOUND THEN
            UPDATE lane SET first = v_first WHERE queue = p_queue AND priority = p_priority AND suspect = r.suspect
                AND lane = r.lane AND first < v_first;
        ELSIF NOT EXISTS (
            SELECT 1 FROM job AS j
            WHERE j.back AND j.queue = p_queue AND j.priority = p_priority AND j.suspect = r.suspect AND j.lane = r.lane
              AND j.ctid <> ALL (p_taken)
        ) THEN
            DELETE FROM lane WHERE queue = p_queue AND priority = p_priority AND suspect = r.suspect AND lane = r.lane;
        END IF;
    END LOOP;
END $$;

-- A lane's next jobs by seq: those that are marked below the cursor, those from the cursor on, and suspects if the claim may
-- take some; none of the tasks in p_full. STABLE, so that it becomes a part of the caller's statement and is planned with it: a SQL
-- function that is not is planned anew by every call.
CREATE FUNCTION lane_jobs_v1(
    p_queue text, p_priority smallint, p_lane text, p_cursor bigint, p_most integer, p_suspects boolean,
    p_taken tid[], p_full text[], p_now bigint
) RETURNS TABLE (at tid, seq bigint, suspect boolean, task text, key text) LANGUAGE sql STABLE AS $$
    SELECT at, seq, suspect, task, key FROM (
        (SELECT job.ctid AS at, job.seq, job.suspect, job.task, job.key FROM job
         WHERE back AND queue = p_queue AND priority = p_priority AND NOT suspect AND lane = p_lane
           AND seq < p_cursor AND (expires_at IS NULL OR expires_at > p_now)
           AND job.ctid <> ALL (p_taken) AND task <> ALL (p_full)
         ORDER BY job.seq LIMIT p_most)
        UNION ALL
        (SELECT job.ctid, job.seq, job.suspect, job.task, job.key FROM job
         WHERE state = 2 AND queue = p_queue AND priority = p_priority AND NOT suspect AND lane = p_lane
           AND seq >= p_cursor AND (expires_at IS NULL OR expires_at > p_now)
           AND job.ctid <> ALL (p_taken) AND task <> ALL (p_full)
         ORDER BY job.seq LIMIT p_most)
        UNION ALL
        (SELECT job.ctid, job.seq, job.suspect, job.task, job.key FROM job
         WHERE p_suspects AND suspect AND state::integer = 2 AND queue = p_queue AND priority = p_priority AND lane = p_lane
           AND (expires_at IS NULL OR expires_at > p_now) AND job.ctid <> ALL (p_taken) AND task <> ALL (p_full)
         ORDER BY job.seq LIMIT p_most)
    ) AS part
    ORDER BY seq LIMIT p_most
$$;
