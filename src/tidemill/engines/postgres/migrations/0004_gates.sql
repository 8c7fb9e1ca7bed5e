-- oldest code: 1
-- Gates and lanes: what a claim may take from a queue with limits or groups. All of it runs under the
-- queue's exclusive lock, so what was counted stays true until the commit.

-- How much a gate still lets through. p_taken: chosen by this claim and not yet running.
CREATE FUNCTION room_v1(
    p_queue text, p_kind text, p_name text, p_concurrency bigint, p_count bigint, p_window bigint, p_taken bigint,
    p_now bigint
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_left bigint := 1::bigint << 40;
    v_held bigint;
BEGIN
    IF p_concurrency IS NOT NULL THEN
        IF p_kind = 'queue' THEN
            SELECT count(*) INTO v_held
            FROM (SELECT 1 FROM job WHERE gated AND queue = p_queue LIMIT p_concurrency) AS held;
        ELSIF p_kind = 'task' THEN
            SELECT count(*) INTO v_held
            FROM (SELECT 1 FROM job WHERE gated AND queue = p_queue AND task = p_name LIMIT p_concurrency) AS held;
        ELSE
            SELECT count(*) INTO v_held
            FROM (SELECT 1 FROM job WHERE gated AND queue = p_queue AND key = p_name LIMIT p_concurrency) AS held;
        END IF;
        v_left := p_concurrency - v_held - p_taken;
    END IF;
    IF p_count IS NOT NULL THEN
        SELECT least(v_left, p_count - coalesce(sum(count), 0)) INTO v_left FROM start
        WHERE queue = p_queue AND kind = p_kind AND name = p_name
          AND step > p_now - greatest(1, p_window / 1000) - p_window;
    END IF;
    RETURN v_left;
END $$;

-- model.gate.opens_at: when a rate that is used up allows a start again; NULL if it is not used up.
CREATE FUNCTION opens_v1(p_queue text, p_kind text, p_name text, p_count bigint, p_window bigint, p_now bigint)
RETURNS bigint LANGUAGE sql AS $$
    SELECT min(step) + greatest(1, p_window / 1000) + p_window FROM (
        SELECT step, sum(count) OVER () AS total, sum(count) OVER () - sum(count) OVER (ORDER BY step) AS rest
        FROM start
        WHERE queue = p_queue AND kind = p_kind AND name = p_name
          AND step > p_now - greatest(1, p_window / 1000) - p_window
    ) AS counting
    WHERE total >= p_count AND rest < p_count
$$;

CREATE FUNCTION log_starts_v1(
    p_queue text, p_kind text, p_names text[], p_counts bigint[], p_window bigint, p_now bigint
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO start (queue, kind, name, step, count, until)
    SELECT p_queue, p_kind, u.name, p_now - p_now % greatest(1, p_window / 1000), sum(u.count),
        p_now - p_now % greatest(1, p_window / 1000) + greatest(1, p_window / 1000) + p_window
    FROM unnest(p_names, p_counts) AS u (name, count) GROUP BY u.name
    ON CONFLICT (queue, kind, name, step) DO UPDATE SET count = start.count + excluded.count, until = excluded.until
$$;

-- Announced lanes come into the table; gates of keys whose time has come, or whose holder went, open.
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

-- The queue's lanes are cut otherwise now: move up to 1,000 waiting jobs to where they belong, looking at up
-- to 10,000, from the place where the last claim stopped. True when all have moved.
CREATE FUNCTION reshape_v1(q queue) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    r record;
    v_looked integer := 0;
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
        v_looked := v_looked + 1;
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
    IF v_moved < 1000 AND v_looked < 10000 THEN
        UPDATE queue SET stale = NULL WHERE name = q.name;
        RETURN true;
    END IF;
    UPDATE queue SET stale = v_at WHERE name = q.name;
    RETURN false;
END $$;

-- A lane's next jobs by seq. Claims that may take suspects merge the two kinds.
CREATE FUNCTION in_lane_v1(
    p_queue text, p_priority smallint, p_lane text, p_after bigint, p_cursor bigint, p_most integer,
    p_suspects boolean, p_taken tid[], p_now bigint
) RETURNS TABLE (at tid, seq bigint, suspect boolean, task text, key text) LANGUAGE sql AS $$
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

-- Choose up to p_most jobs of a queue with limits or groups, in the order in which they are taken: by
-- priority, lanes by turns from where the claimant stopped, in a lane by seq, while its gates have room.
-- `used` says how many jobs of its turn the lane has given then. Starts are logged, full gates of keys parked. A last row
-- without `at`: a lane was left because somebody has locked its next job.
CREATE FUNCTION gated_v1(
    q queue, p_most integer, p_suspects integer, p_turns jsonb, p_cursors bigint[], p_lanes jsonb,
    p_taken tid[], p_tasks text[], p_keys text[], p_now bigint
) RETURNS TABLE (at tid, suspect boolean, task text, key text, priority smallint, lane text, used integer)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    r record;
    l record;
    v_left integer := p_most;
    v_suspects integer := p_suspects;
    v_own bigint;
    v_tasks text[] := '{}';       -- limited tasks, and what is left of each
    v_task_left bigint[] := '{}';
    v_keys text[] := '{}';        -- keys met, and what is left of each
    v_key_left bigint[] := '{}';
    v_started text[] := '{}';     -- task and key of each job chosen
    v_started_keys text[] := '{}';
    v_limit jsonb;
    v_name text;
    v_lanes text[];
    v_lane_tasks text[];
    v_lane_keys text[];
    v_weights integer[];
    v_pos bigint[];
    v_done boolean[];
    v_empty text[];
    v_last text;
    v_used integer;
    v_weight integer;
    v_fetch integer;
    v_given integer;
    v_met integer;
    v_looks integer := 0;
    v_locked boolean := false;
    v_cursor bigint;
    v_task_at integer;
    v_key_at integer;
    v_more boolean;
    v_first boolean;
    p smallint;
    n integer;
    i integer;
BEGIN
    v_own := CASE WHEN q.concurrency IS NULL AND q.rate_count IS NULL THEN 1::bigint << 40 ELSE
        room_v1(q.name, 'queue', '', q.concurrency, q.rate_count, q.rate_window, cardinality(p_tasks), p_now) END;
    IF v_own <= 0 THEN
        RETURN;
    END IF;
    FOR v_name, v_limit IN SELECT * FROM jsonb_each(q.tasks) LOOP
        v_tasks := v_tasks || v_name;
        v_task_left := v_task_left || room_v1(
            q.name, 'task', v_name, (v_limit ->> 0)::bigint, (v_limit ->> 1)::bigint, (v_limit ->> 2)::bigint,
            (SELECT count(*) FROM unnest(p_tasks) AS t WHERE t = v_name), p_now);
    END LOOP;
    FOR n IN 0 .. 10 LOOP
        EXIT WHEN v_left <= 0 OR v_own <= 0;
        p := n::smallint;
        v_last := p_turns -> n::text ->> 0;
        v_used := coalesce((p_turns -> n::text ->> 1)::integer, 0);
        -- open lanes in the order of their turns
        SELECT array_agg(o.lane), array_agg(o.task), array_agg(o.key),
               array_agg(coalesce((q.weights ->> o.key)::integer, 1))
        INTO v_lanes, v_lane_tasks, v_lane_keys, v_weights
        FROM (
            SELECT '' COLLATE "C" AS lane, '' COLLATE "C" AS task, '' COLLATE "C" AS key, v_last IS NOT NULL AS late
            UNION ALL
            SELECT * FROM (
                SELECT DISTINCT ON (lane) lane, task, key, false FROM lane
                WHERE queue = q.name AND priority = p AND NOT parked AND (NOT suspect OR p_suspects > 0)
                  AND q.shaped AND (v_last IS NULL OR lane > v_last) AND lane <> ''
                ORDER BY lane LIMIT 1000
            ) AS after_last
            UNION ALL
            SELECT * FROM (
                SELECT DISTINCT ON (lane) lane, task, key, true FROM lane
                WHERE queue = q.name AND priority = p AND NOT parked AND (NOT suspect OR p_suspects > 0)
                  AND q.shaped AND lane <= v_last AND lane <> ''
                ORDER BY lane LIMIT 1000
            ) AS up_to_last
            ORDER BY late, lane
        ) AS o;
        v_pos := array_fill(-1::bigint, ARRAY[cardinality(v_lanes)]);
        v_done := array_fill(false, ARRAY[cardinality(v_lanes)]);
        v_empty := '{}';
        v_first := v_last IS NOT NULL;  -- the last lane goes on with the turn in which it was cut short
        LOOP
            v_more := false;
            FOR i IN 1 .. cardinality(v_lanes) LOOP
                CONTINUE WHEN v_done[i];
                v_weight := v_weights[i];
                IF v_first THEN
                    CONTINUE WHEN v_lanes[i] <> v_last OR v_used >= v_weight;
                    v_fetch := v_weight - v_used;
                ELSE
                    v_used := 0;
                    v_fetch := v_weight;
                END IF;
                v_task_at := array_position(v_tasks, v_lane_tasks[i]);
                IF v_task_left[v_task_at] <= 0 THEN
                    v_done[i] := true;
                    CONTINUE;
                END IF;
                IF cardinality(v_lanes) = 1 THEN  -- no turns to take
                    v_fetch := v_left;
                END IF;
                v_fetch := least(v_fetch, v_left);
                v_cursor := CASE WHEN v_lanes[i] = '' THEN coalesce(p_cursors[2 * n + 1], 0) ELSE
                    coalesce((p_lanes ->> (n || ':' || v_lanes[i]))::bigint, 0) END;
                v_met := 0;
                FOR r IN SELECT * FROM in_lane_v1(q.name, p, v_lanes[i], v_pos[i], v_cursor, v_fetch,
                                                  v_suspects > 0, p_taken, p_now) LOOP
                    v_met := v_met + 1;
                    -- A transaction that does not see the queue as it is now stores jobs of a limited task without a
                    -- group. They are passed over while the task's gate is full: others behind them may go.
                    IF v_lanes[i] = '' THEN
                        v_task_at := array_position(v_tasks, r.task);
                        IF v_task_left[v_task_at] <= 0 THEN
                            v_pos[i] := r.seq;
                            CONTINUE;
                        END IF;
                    END IF;
                    v_key_at := NULL;
                    IF q.key_limited THEN
                        v_key_at := array_position(v_keys, r.key);
                        IF v_key_at IS NULL THEN
                            v_keys := v_keys || r.key;
                            v_key_at := cardinality(v_keys);
                            v_key_left := v_key_left || room_v1(
                                q.name, 'key', r.key, q.key_concurrency, q.key_rate_count, q.key_rate_window,
                                (SELECT count(*) FROM unnest(p_keys) AS k WHERE k = r.key), p_now);
                        END IF;
                    END IF;
                    IF v_own <= 0 OR v_task_left[v_task_at] <= 0 OR v_key_left[v_key_at] <= 0 THEN
                        v_done[i] := true;
                        EXIT;
                    END IF;
                    IF r.suspect AND v_suspects <= 0 THEN
                        v_pos[i] := r.seq;
                        CONTINUE;
                    END IF;
                    -- Locked before it counts: a gate that is parked for a job which then cannot be taken (it was
                    -- cancelled, or got a child) would never be told that it is free. One that changes now is looked
                    -- at again, and then left to the next claim; nobody behind it passes.
                    PERFORM 1 FROM job AS j WHERE j.ctid = r.at AND j.state::integer = 2 FOR NO KEY UPDATE SKIP LOCKED;
                    IF NOT FOUND THEN
                        v_looks := v_looks + 1;
                        v_done[i] := v_looks > 3;
                        v_locked := v_locked OR v_done[i];
                        v_met := v_fetch;
                        EXIT;
                    END IF;
                    v_pos[i] := r.seq;
                    v_own := v_own - 1;
                    IF v_task_at IS NOT NULL THEN
                        v_task_left[v_task_at] := v_task_left[v_task_at] - 1;
                    END IF;
                    IF v_key_at IS NOT NULL THEN
                        v_key_left[v_key_at] := v_key_left[v_key_at] - 1;
                    END IF;
                    v_suspects := v_suspects - r.suspect::integer;
                    v_left := v_left - 1;
                    v_used := v_used % v_weight + 1;
                    v_started := v_started || r.task;
                    v_started_keys := v_started_keys || r.key;
                    at := r.at;
                    suspect := r.suspect;
                    task := r.task;
                    key := r.key;
                    priority := p;
                    lane := v_lanes[i];
                    used := v_used;
                    RETURN NEXT;
                END LOOP;
                IF NOT v_done[i] AND v_met < v_fetch THEN
                    v_done[i] := true;
                    IF v_lanes[i] <> '' AND v_cursor = 0 THEN
                        v_empty := v_empty || v_lanes[i];
                    END IF;
                END IF;
                v_more := v_more OR NOT v_done[i];
                EXIT WHEN v_left <= 0 OR v_own <= 0;
            END LOOP;
            EXIT WHEN v_left <= 0 OR v_own <= 0 OR NOT (v_more OR v_first);
            v_first := false;
        END LOOP;
        IF v_empty <> '{}' THEN
            DELETE FROM lane AS e WHERE queue = q.name AND priority = p AND lane = ANY (v_empty) AND NOT EXISTS (
                SELECT 1 FROM job AS j WHERE j.state = 2 AND j.queue = q.name AND j.priority = p
                AND j.suspect = e.suspect AND j.lane = e.lane);
        END IF;
    END LOOP;
    IF q.rate_count IS NOT NULL AND v_started <> '{}' THEN
        PERFORM log_starts_v1(q.name, 'queue', ARRAY[''], ARRAY[cardinality(v_started)::bigint], q.rate_window, p_now);
    END IF;
    FOR v_name, v_limit IN SELECT * FROM jsonb_each(q.tasks) LOOP
        IF v_limit ->> 1 IS NOT NULL AND v_name = ANY (v_started) THEN
            PERFORM log_starts_v1(q.name, 'task', ARRAY[v_name],
                ARRAY[(SELECT count(*) FROM unnest(v_started) AS t WHERE t = v_name)], (v_limit ->> 2)::bigint, p_now);
        END IF;
    END LOOP;
    IF q.key_rate_count IS NOT NULL AND v_started <> '{}' THEN
        PERFORM log_starts_v1(q.name, 'key', v_started_keys, array_fill(1::bigint, ARRAY[cardinality(v_started)]),
                              q.key_rate_window, p_now);
    END IF;
    IF EXISTS (SELECT 1 FROM unnest(v_key_left) AS k WHERE k <= 0) THEN
        INSERT INTO parked (queue, key, wake_at)
        SELECT q.name, u.key, opens_v1(q.name, 'key', u.key, q.key_rate_count, q.key_rate_window, p_now)
        FROM unnest(v_keys, v_key_left) AS u (key, room) WHERE u.room <= 0
        ON CONFLICT (queue, key) DO UPDATE SET wake_at = excluded.wake_at;
        UPDATE lane SET parked = true FROM unnest(v_keys, v_key_left) AS u (key, room)
        WHERE u.room <= 0 AND lane.queue = q.name AND lane.key = u.key AND NOT lane.parked;
    END IF;
    IF v_locked THEN
        at := NULL;
        RETURN NEXT;
    END IF;
END $$;

CREATE TYPE pair_v1 AS (task text, key text);

-- Whether one job, claimed by its id, may pass all its gates; its starts are logged. p_taken: what this claim
-- has chosen of the queue so far.
CREATE FUNCTION pass_v1(q queue, p_task text, p_key text, p_now bigint, p_taken pair_v1[]) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_limit jsonb := q.tasks -> p_task;
BEGIN
    IF (q.concurrency IS NOT NULL OR q.rate_count IS NOT NULL) AND room_v1(
        q.name, 'queue', '', q.concurrency, q.rate_count, q.rate_window, cardinality(p_taken), p_now) <= 0
    OR v_limit IS NOT NULL AND room_v1(
        q.name, 'task', p_task, (v_limit ->> 0)::bigint, (v_limit ->> 1)::bigint, (v_limit ->> 2)::bigint,
        (SELECT count(*) FROM unnest(p_taken) AS t WHERE t.task = p_task), p_now) <= 0
    OR q.key_limited AND room_v1(
        q.name, 'key', p_key, q.key_concurrency, q.key_rate_count, q.key_rate_window,
        (SELECT count(*) FROM unnest(p_taken) AS t WHERE t.key = p_key), p_now) <= 0
    THEN
        RETURN false;
    END IF;
    IF q.rate_count IS NOT NULL THEN
        PERFORM log_starts_v1(q.name, 'queue', ARRAY[''], '{1}', q.rate_window, p_now);
    END IF;
    IF v_limit ->> 1 IS NOT NULL THEN
        PERFORM log_starts_v1(q.name, 'task', ARRAY[p_task], '{1}', (v_limit ->> 2)::bigint, p_now);
    END IF;
    IF q.key_rate_count IS NOT NULL THEN
        PERFORM log_starts_v1(q.name, 'key', ARRAY[p_key], '{1}', q.key_rate_window, p_now);
    END IF;
    RETURN true;
END $$;

-- When time alone opens something in a queue: a due job, a rate.
CREATE FUNCTION opens_next_v1(q queue, p_now bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_next bigint;
    v_name text;
    v_limit jsonb;
BEGIN
    SELECT due_at INTO v_next FROM job WHERE state = 1 AND queue = q.name ORDER BY due_at LIMIT 1;
    IF q.limited THEN
        IF q.rate_count IS NOT NULL THEN
            v_next := least(v_next, opens_v1(q.name, 'queue', '', q.rate_count, q.rate_window, p_now));
        END IF;
        FOR v_name, v_limit IN SELECT * FROM jsonb_each(q.tasks) LOOP
            IF v_limit ->> 1 IS NOT NULL THEN
                v_next := least(v_next, opens_v1(q.name, 'task', v_name, (v_limit ->> 1)::bigint,
                                                 (v_limit ->> 2)::bigint, p_now));
            END IF;
        END LOOP;
        v_next := least(v_next, (SELECT min(wake_at) FROM parked WHERE queue = q.name AND wake_at IS NOT NULL));
    END IF;
    RETURN v_next;
END $$;
