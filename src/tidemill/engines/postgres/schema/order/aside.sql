-- Jobs that stand aside, because their task is paused, or because a claim met them whose claimant does not know it.
--
-- Such a job is marked `aside`, and its lane's text begins with its task: so no claim reads it among the others, and all of a
-- task lie together (job_aside). Claims that have nothing to do with tasks pay for none of this: see `needs_tasks_v1`.
--
--     bring_back_v1        before a claim chooses: the first jobs that stand aside and that it may take stand in their lanes
--     choose_by_tasks_v1   it chooses. What it chose of a task that it may not take it sets aside, and chooses anew
--     return_aside_v1      what was brought back and not taken stands aside again
--
-- All of that is one transaction, so nobody else ever sees a job come back that is not taken. What this costs is writes: up to
-- as many rows in each lane as the claim wants.

-- The text of the lane in which jobs of this task and group stand aside: no task and no key contains the character.
CREATE FUNCTION aside_lane_v1(p_task text, p_group text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT p_task || chr(30) || p_group
$$;

-- Whether a claim has to look at the tasks of jobs.
CREATE FUNCTION needs_tasks_v1(p_unknown text[], p_queues text[]) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT p_unknown <> '{}' OR EXISTS (SELECT 1 FROM paused_task)
        OR EXISTS (SELECT 1 FROM job WHERE aside AND queue = ANY (p_queues))
$$;

-- The tasks of which a claim takes no job.
CREATE FUNCTION passed_tasks_v1(p_unknown text[]) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT p_unknown || ARRAY(SELECT name FROM paused_task)
$$;

-- The tasks of which jobs stand aside in a queue, beside those passed over. It jumps from task to task, whatever the number of
-- their jobs.
CREATE FUNCTION tasks_aside_v1(p_queue text, p_passed text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_task text := '';
    v_found text[] := '{}';
BEGIN
    LOOP
        SELECT task INTO v_task FROM job WHERE aside AND queue = p_queue AND task > v_task ORDER BY queue, task LIMIT 1;
        EXIT WHEN NOT FOUND;
        IF v_task <> ALL (p_passed) THEN
            v_found := v_found || v_task;
        END IF;
    END LOOP;
    RETURN v_found;
END $$;

-- Bring back what stands aside in a queue: of each lane and task the first p_most jobs, fewer if there are many lanes. They
-- are locked. Of a laned queue this is done under its exclusive lock, and their lanes are opened.
CREATE FUNCTION bring_back_v1(q queue, p_tasks text[], p_most integer, p_suspects boolean) RETURNS bytea[]
LANGUAGE plpgsql AS $$
DECLARE
    l record;
    v_task text;
    v_lanes integer := 0;
    v_found bytea[] := '{}';
    v_most integer := p_most;
BEGIN
    FOREACH v_task IN ARRAY p_tasks LOOP
        SELECT -1::smallint AS priority, false AS suspect, '' AS lane INTO l;
        LOOP
            SELECT j.priority, j.suspect, j.lane INTO l FROM job AS j
            WHERE j.aside AND j.queue = q.name AND j.task = v_task
              AND (j.priority, j.suspect, j.lane) > (l.priority, l.suspect, l.lane)
            ORDER BY j.queue, j.task, j.priority, j.suspect, j.lane LIMIT 1;
            EXIT WHEN NOT FOUND OR v_lanes >= 1000;
            CONTINUE WHEN l.suspect AND NOT p_suspects;
            v_lanes := v_lanes + 1;
            v_most := least(v_most, greatest(1, 1000 / v_lanes));
            v_found := v_found || ARRAY(
                SELECT j.id FROM job AS j
                WHERE j.aside AND j.queue = q.name AND j.task = v_task AND j.priority = l.priority
                  AND j.suspect = l.suspect AND j.lane = l.lane
                ORDER BY j.seq LIMIT v_most FOR NO KEY UPDATE SKIP LOCKED);
        END LOOP;
    END LOOP;
    IF v_found <> '{}' THEN
        WITH changed AS (
            UPDATE job SET aside = false, back = true, lane = group_of_v1(q.keyed, q.tasks, task, key)
            WHERE id = ANY (v_found) AND aside RETURNING priority, suspect, lane, task, key
        )
        INSERT INTO lane_new (queue, priority, suspect, lane, task, key, first)
        SELECT DISTINCT q.name, priority, suspect, lane, CASE WHEN q.tasks ? task THEN task ELSE '' END,
            CASE WHEN q.keyed THEN key ELSE '' END, 9223372036854775807
        FROM changed WHERE q.laned;
        IF q.laned THEN
            PERFORM fold_lanes_v1(q);
        END IF;
    END IF;
    RETURN v_found;
END $$;

-- What was brought back and not taken stands aside again. Answers the signals: who came meanwhile has found them locked.
CREATE FUNCTION return_aside_v1(p_brought bytea[], p_taken tid[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_signals text[];
BEGIN
    WITH changed AS (
        UPDATE job AS j SET aside = true, back = false, lane = aside_lane_v1(j.task, j.lane)
        FROM queue AS q
        WHERE j.id = ANY (p_brought) AND j.state::integer = 2 AND NOT j.aside AND j.ctid <> ALL (p_taken)
          AND q.name = j.queue
        RETURNING j.queue, q.laned
    )
    SELECT array_agg(DISTINCT 'ready:' || queue) FILTER (WHERE NOT laned) INTO v_signals FROM changed;
    RETURN coalesce(v_signals, '{}');
END $$;

-- Set jobs aside that stand in their lanes, unless another transaction has locked them. Answers how many.
CREATE FUNCTION stand_aside_v1(p_ids bytea[], p_unknown text[]) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    v_count integer;
BEGIN
    WITH free AS (
        SELECT id FROM job WHERE id = ANY (p_ids) AND state::integer = 2 AND NOT aside ORDER BY id FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE job AS j SET aside = true, back = false, lane = aside_lane_v1(j.task, j.lane),
        reason = CASE WHEN j.task = ANY (p_unknown) THEN 'unknown task' ELSE j.reason END
    FROM free WHERE j.id = free.id;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    RETURN v_count;
END $$;

-- Set aside what a choice has met: from the first of them on, also those of these tasks among the next in their lanes. At most
-- p_most.
CREATE FUNCTION set_aside_v1(p_met tid[], p_passed text[], p_unknown text[], p_most integer) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    r record;
    v_ids bytea[] := '{}';
BEGIN
    FOR r IN SELECT queue, priority, suspect, lane, min(seq) AS first FROM job WHERE ctid = ANY (p_met) GROUP BY 1, 2, 3, 4 LOOP
        v_ids := v_ids || ARRAY(
            SELECT n.id FROM (
                SELECT j.id, j.task FROM job AS j
                WHERE j.state = 2 AND j.queue = r.queue AND j.priority = r.priority AND j.suspect = r.suspect AND j.lane = r.lane
                  AND j.seq >= r.first ORDER BY j.seq LIMIT 1000
            ) AS n WHERE n.task = ANY (p_passed) LIMIT greatest(0, p_most - cardinality(v_ids)));
    END LOOP;
    RETURN stand_aside_v1(v_ids, p_unknown);
END $$;

-- Choose jobs where tasks matter. A choice that has met jobs of tasks that are passed over is undone: its permits were not
-- taken, its gates were not parked. They are set aside, and it is made again.
CREATE FUNCTION choose_by_tasks_v1(
    s selection_v1, p_unknown text[], p_cursors bigint[], p_lanes jsonb, p_turns jsonb, p_now bigint
) RETURNS selection_v1 LANGUAGE plpgsql AS $$
DECLARE
    t selection_v1;
    q queue;
    v_passed text[] := passed_tasks_v1(p_unknown);
    v_tasks text[];
    v_brought bytea[] := '{}';
    v_met tid[];
    v_left integer := 1000;
BEGIN
    FOREACH q IN ARRAY s.queues LOOP
        v_tasks := tasks_aside_v1(q.name, v_passed);
        IF v_tasks <> '{}' THEN
            v_brought := v_brought || bring_back_v1(q, v_tasks, s.wanted, s.suspects > 0);
        END IF;
    END LOOP;
    LOOP
        BEGIN
            t := choose_in_queues_v1(s, p_cursors, p_lanes, p_turns, p_now);
            v_met := ARRAY(SELECT u.at FROM unnest(t.taken) AS u (at) JOIN job AS j ON j.ctid = u.at
                           WHERE j.task = ANY (v_passed));
            EXIT WHEN v_met = '{}';
            RAISE EXCEPTION USING ERRCODE = 'PN010', MESSAGE = 'this choice is undone';
        EXCEPTION WHEN SQLSTATE 'PN010' THEN
            s.signals := s.signals || ARRAY(SELECT DISTINCT 'ready:' || j.queue FROM job AS j WHERE j.ctid = ANY (v_met));
            v_left := v_left - greatest(1, set_aside_v1(v_met, v_passed, p_unknown, v_left));
        END;
        t := s;
        IF v_left <= 0 THEN
            t.more := true;
            EXIT;
        END IF;
    END LOOP;
    IF v_brought <> '{}' THEN
        t.signals := t.signals || return_aside_v1(v_brought, t.taken);
    END IF;
    RETURN t;
END $$;

-- The ids of a claim that names some, without those of tasks that are passed over: these are set aside.
CREATE FUNCTION known_ids_v1(s selection_v1, p_ids bytea[], p_unknown text[], p_now bigint,
                             OUT ids bytea[], OUT signals text[]) LANGUAGE plpgsql AS $$
DECLARE
    v_passed text[] := passed_tasks_v1(p_unknown);
    v_met bytea[] := ARRAY(
        SELECT id FROM job WHERE id = ANY (p_ids) AND state::integer = 2 AND queue = ANY (s.names) AND task = ANY (v_passed)
          AND (expires_at IS NULL OR expires_at > p_now) LIMIT 1000);
BEGIN
    signals := ARRAY(SELECT DISTINCT 'ready:' || queue FROM job WHERE id = ANY (v_met) AND NOT aside);
    PERFORM stand_aside_v1(v_met, p_unknown);
    ids := ARRAY(SELECT u.id FROM unnest(p_ids) WITH ORDINALITY AS u (id, position) WHERE u.id <> ALL (v_met) ORDER BY u.position);
END $$;

-- An operator holds back the jobs of a task.
CREATE FUNCTION pause_task_v1(p_name text, p_by text, p_why text, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint := coalesce(p_now, instant_v1());
BEGIN
    PERFORM existing_task_v1(p_name);
    INSERT INTO paused_task (name, paused_at, paused_by, paused_why) VALUES (p_name, v_now, p_by, p_why) ON CONFLICT DO NOTHING;
    IF FOUND THEN
        PERFORM audit_v1(p_by, 'pause task', p_name, p_why, v_now);
    END IF;
END $$;

CREATE FUNCTION resume_task_v1(p_name text, p_by text, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    PERFORM existing_task_v1(p_name);
    DELETE FROM paused_task WHERE name = p_name;
    IF NOT FOUND THEN
        RETURN '{}';
    END IF;
    PERFORM audit_v1(p_by, 'resume task', p_name, '', coalesce(p_now, instant_v1()));
    RETURN ARRAY(
        SELECT 'ready:' || q.name FROM queue AS q
        WHERE EXISTS (SELECT 1 FROM job AS j WHERE j.aside AND j.queue = q.name AND j.task = p_name));
END $$;

CREATE FUNCTION existing_task_v1(p_name text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM task WHERE name = p_name) THEN
        RAISE EXCEPTION USING ERRCODE = 'PN011', MESSAGE = format('no worker has published a task %L', p_name);
    END IF;
END $$;
