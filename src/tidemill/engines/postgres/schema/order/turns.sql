-- Whose turn it is: what a claim chooses in a queue with groups or limits.
--
--     choose_by_turns_v1        one queue: measures its gates, then goes through the priorities that have open lanes
--       choose_in_priority_v1   one priority: passes over its open lanes until the claim has what it wants
--         next_lanes_v1         the lanes of a pass, at most as many as jobs are wanted
--         take_v1               one pass: the next jobs of all these lanes in the order of their turns, while gates have room
--
-- They pass one value to each other, a choice. A pass begins where the last one stopped, exactly as the next claim would. So
-- whatever changes what may be taken (a suspect too many, a full task) ends a pass, and the next one goes on without it.

-- What a claim has chosen of one queue, and how much room its gates have left.
CREATE TYPE choice_v1 AS (
    wanted        integer,     -- how many more jobs the claim wants of this queue
    suspects      integer,     -- how many more suspects it may take
    queue_room    bigint,      -- room of the queue's own gate
    open_tasks    text[],      -- the limited tasks that have open lanes and room; '' for lanes of other tasks
    tasks         text[],      -- the limited tasks that were measured,
    task_rooms    bigint[],    -- and the room of each one's gate
    full_tasks    text[],      -- the limited tasks without room: met in lanes of other tasks, they are passed over
    earlier_tasks text[],      -- tasks and keys of jobs that the claim chose of this queue before this choice: they hold
    earlier_keys  text[],      -- permits too
    keys          text[],      -- the keys that were measured, if keys are limited,
    key_rooms     bigint[],    -- and the room of each one's gate
    taken         tid[],       -- the chosen jobs, locked, in the order in which they were chosen,
    started_tasks text[],      -- the task of each,
    started_keys  text[],      -- and the key of each
    turns         jsonb,       -- {priority: [lane, used]}: the lane that gave last, and how many jobs of its turn it gave
    locked        boolean,     -- a lane was left because another transaction has locked its next job
    -- of the priority whose lanes are read:
    last          text,        -- the lane that gave last,
    used          integer,     -- and how many jobs of its turn it gave
    gave          boolean,     -- this choice has taken jobs there
    done          text[]       -- lanes that have nothing more for this claim
);

-- The lanes of one pass. Only lane by lane as long as `lanes`: their keys' positions in `keys` of the choice.
CREATE TYPE pass_v1 AS (
    lanes   text[],
    tasks   text[],
    keys    text[],
    weights integer[],
    firsts  bigint[],
    whole   boolean            -- these are all open lanes
);

-- How much room the gate of a limited task has. p_earlier: tasks of jobs that this claim has chosen, which do not run yet.
CREATE FUNCTION task_room_v1(q queue, p_task text, p_earlier text[], p_now bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_limit jsonb := q.tasks -> p_task;
BEGIN
    RETURN room_v1(q.name, 'task', p_task, (v_limit ->> 0)::bigint, (v_limit ->> 1)::bigint, (v_limit ->> 2)::bigint,
                   cardinality(array_positions(p_earlier, p_task)), p_now);
END $$;

-- A choice with nothing in it. Parked gates are not measured. p_tasks, p_keys: of the jobs that this claim chose of the queue
-- before.
CREATE FUNCTION new_choice_v1(
    q queue, p_most integer, p_suspects integer, p_tasks text[], p_keys text[], p_now bigint
) RETURNS choice_v1 LANGUAGE plpgsql AS $$
DECLARE
    c choice_v1;
    v_name text;
    v_room bigint;
BEGIN
    c.wanted := p_most;
    c.suspects := p_suspects;
    c.queue_room := 1::bigint << 40;
    c.open_tasks := '{}';
    c.tasks := '{}';
    c.task_rooms := '{}';
    c.full_tasks := '{}';
    c.earlier_tasks := p_tasks;
    c.earlier_keys := p_keys;
    c.keys := '{}';
    c.key_rooms := '{}';
    c.taken := '{}';
    c.started_tasks := '{}';
    c.started_keys := '{}';
    c.turns := '{}';
    c.locked := false;
    IF EXISTS (SELECT 1 FROM lane WHERE queue = q.name AND task = '' AND NOT parked
               ORDER BY queue, task, priority, lane OFFSET 0) THEN
        c.open_tasks := ARRAY[''];
    END IF;
    IF q.tasks <> '{}' THEN
        FOR v_name IN SELECT t.name FROM jsonb_object_keys(q.tasks) AS t (name)
                      CROSS JOIN LATERAL (
                          SELECT 1 FROM lane WHERE queue = q.name AND task = t.name AND NOT parked
                          ORDER BY queue, task, priority, lane LIMIT 1
                      ) AS e LOOP
            v_room := 0;
            IF NOT EXISTS (SELECT 1 FROM parked WHERE queue = q.name AND kind = 'task' AND name = v_name) THEN
                v_room := task_room_v1(q, v_name, p_tasks, p_now);
                c.tasks := c.tasks || v_name;
                c.task_rooms := c.task_rooms || v_room;
            END IF;
            IF v_room > 0 THEN
                c.open_tasks := c.open_tasks || v_name;
            ELSE
                c.full_tasks := c.full_tasks || v_name;
            END IF;
        END LOOP;
    END IF;
    IF c.open_tasks = '{}' THEN
        RETURN c;
    ELSIF EXISTS (SELECT 1 FROM parked WHERE queue = q.name AND kind = 'queue' AND name = '') THEN
        c.open_tasks := '{}';
    ELSIF q.concurrency IS NOT NULL OR q.rate_count IS NOT NULL THEN
        c.queue_room := room_v1(q.name, 'queue', '', q.concurrency, q.rate_count, q.rate_window, cardinality(p_tasks), p_now);
    END IF;
    RETURN c;
END $$;

-- Up to p_most open lanes of a priority in the order of their turns, which begins after the lane that gave last.
CREATE FUNCTION next_lanes_v1(c choice_v1, q queue, p_priority smallint, p_most integer) RETURNS pass_v1 LANGUAGE plpgsql AS $$
DECLARE
    l pass_v1;
BEGIN
    SELECT array_agg(o.lane), array_agg(o.task), array_agg(o.key), array_agg(coalesce((q.weights ->> o.key)::integer, 1)),
        array_agg(o.first), count(*) < p_most
    INTO l
    FROM (
        SELECT DISTINCT ON (u.late, u.lane) u.* FROM (
            SELECT e.*, false AS late FROM unnest(c.open_tasks) AS t (name)
            CROSS JOIN LATERAL (
                SELECT lane, task, key, first FROM lane
                WHERE queue = q.name AND task = t.name AND priority = p_priority AND NOT parked
                  AND (NOT suspect OR c.suspects > 0) AND (c.last IS NULL OR lane > c.last) AND lane <> ALL (c.done)
                ORDER BY queue, task, priority, lane LIMIT 2 * p_most  -- a lane may have a row of suspects too
            ) AS e
            UNION ALL
            SELECT e.*, true FROM unnest(c.open_tasks) AS t (name)
            CROSS JOIN LATERAL (
                SELECT lane, task, key, first FROM lane
                WHERE queue = q.name AND task = t.name AND priority = p_priority AND NOT parked
                  AND (NOT suspect OR c.suspects > 0) AND lane <= c.last AND lane <> ALL (c.done)
                ORDER BY queue, task, priority, lane LIMIT 2 * p_most  -- a lane may have a row of suspects too
            ) AS e
        ) AS u
        ORDER BY u.late, u.lane, u.first LIMIT p_most
    ) AS o;
    RETURN l;
END $$;

-- The lane that gave last, if it goes on with the turn that was cut short.
CREATE FUNCTION same_lane_v1(c choice_v1, q queue, p_priority smallint) RETURNS pass_v1 LANGUAGE plpgsql AS $$
DECLARE
    l pass_v1;
BEGIN
    SELECT ARRAY[o.lane], ARRAY[o.task], ARRAY[o.key], ARRAY[coalesce((q.weights ->> o.key)::integer, 1)], ARRAY[o.first], false
    INTO l
    FROM (
        SELECT lane, task, key, min(first) AS first FROM lane
        WHERE queue = q.name AND priority = p_priority AND lane = c.last AND NOT parked
          AND (NOT suspect OR c.suspects > 0) AND task = ANY (c.open_tasks) AND lane <> ALL (c.done) GROUP BY lane, task, key
    ) AS o
    WHERE c.used < coalesce((q.weights ->> o.key)::integer, 1) LIMIT 1;
    RETURN l;
END $$;

-- One pass: each lane gives up to p_rounds turns, in the order of the turns, then by lane. Locks what it takes, before it
-- counts: a gate that is parked for a job which then cannot be taken (it was cancelled, or got a child) would never open
-- again. A lane whose next job is locked is left to the next claim; no job behind it passes.
CREATE FUNCTION take_v1(
    c choice_v1, l pass_v1, q queue, p_priority smallint, p_rounds integer, p_used integer, p_cursors bigint[], p_lanes jsonb,
    p_excluded tid[], p_now bigint
) RETURNS choice_v1 LANGUAGE plpgsql AS $$
DECLARE
    r record;
    v_lanes text[] := l.lanes;
    v_count integer := cardinality(v_lanes);
    v_task_at integer[] := ARRAY(SELECT array_position(c.tasks, t) FROM unnest(l.tasks) AS t);
    v_key_at integer[] := array_fill(NULL::integer, ARRAY[v_count]);
    v_cursors bigint[];
    v_mosts integer[];
    v_met integer[] := array_fill(0, ARRAY[v_count]);
    v_done boolean[] := array_fill(false, ARRAY[v_count]);
    v_ended boolean := true;
    v_drained text[];
    v_task integer;
    v_key integer;
    -- apart from the choice, because to write a field of it for every job costs a copy of all of it
    v_key_rooms bigint[];
    v_task_rooms bigint[] := c.task_rooms;
    v_wanted integer := c.wanted;
    v_room bigint := c.queue_room;
    v_taken tid[] := '{}';
    v_tasks text[] := '{}';
    v_keys text[] := '{}';
BEGIN
    IF q.key_limited THEN
        WITH unknown AS (SELECT array_agg(DISTINCT k) AS keys FROM unnest(l.keys) AS k WHERE k <> ALL (c.keys))
        SELECT c.keys || u.keys, c.key_rooms || key_rooms_v1(q, u.keys, c.earlier_keys, p_now) INTO c.keys, c.key_rooms
        FROM unknown AS u;
        v_key_at := ARRAY(SELECT array_position(c.keys, k) FROM unnest(l.keys) AS k);
    END IF;
    v_key_rooms := c.key_rooms;
    SELECT array_agg(greatest(u.first, coalesce(CASE WHEN u.lane = '' THEN p_cursors[2 * p_priority + 1]
               ELSE (p_lanes ->> (p_priority || ':' || u.lane))::bigint END, 0)) ORDER BY u.n),
           array_agg(least(u.weight * p_rounds - p_used, v_wanted, CASE WHEN u.key_at IS NULL THEN v_wanted ELSE greatest(v_key_rooms[u.key_at], 0) + 1 END)
                     ORDER BY u.n)
    INTO v_cursors, v_mosts
    FROM unnest(v_lanes, l.firsts, l.weights, v_key_at) WITH ORDINALITY AS u (lane, first, weight, key_at, n);
    FOR r IN
        SELECT u.n, j.*
        FROM unnest(v_lanes, l.weights, v_cursors, v_mosts) WITH ORDINALITY AS u (lane, weight, cursor, most, n)
        CROSS JOIN LATERAL (
            SELECT row_number() OVER (ORDER BY f.seq) AS rank, f.* FROM lane_jobs_v1(
                q.name, p_priority, u.lane, u.cursor, u.most, c.suspects > 0, p_excluded, c.full_tasks, p_now) AS f
        ) AS j
        ORDER BY (j.rank - 1) / u.weight, u.n, j.rank
    LOOP
        IF v_wanted <= 0 OR v_room <= 0 THEN
            v_ended := false;
            EXIT;
        END IF;
        CONTINUE WHEN v_done[r.n];
        v_task := v_task_at[r.n];
        v_key := v_key_at[r.n];
        IF v_task IS NULL AND q.tasks ? r.task THEN
            -- A transaction that did not see the queue's present options has stored a job of a limited task in this lane.
            -- While the task's gate is full it is passed over: others behind it may go.
            v_task := array_position(c.tasks, r.task);
            IF v_task IS NULL THEN
                c.tasks := c.tasks || r.task;
                v_task_rooms := v_task_rooms || task_room_v1(q, r.task, c.earlier_tasks, p_now);
                v_task := cardinality(c.tasks);
            END IF;
            IF v_task_rooms[v_task] <= 0 THEN
                c.full_tasks := c.full_tasks || r.task;
                v_ended := false;
                EXIT;
            END IF;
        END IF;
        IF q.key_limited AND r.key <> l.keys[r.n] THEN  -- the same of its key
            v_key := array_position(c.keys, r.key);
            IF v_key IS NULL THEN
                c.keys := c.keys || r.key;
                v_key_rooms := v_key_rooms || key_rooms_v1(q, ARRAY[r.key], c.earlier_keys, p_now);
                v_key := cardinality(c.keys);
            END IF;
        END IF;
        IF v_task_rooms[v_task] <= 0 OR v_key_rooms[v_key] <= 0 THEN
            v_done[r.n] := true;
            CONTINUE;
        END IF;
        IF r.suspect AND c.suspects <= 0 THEN
            v_ended := false;
            EXIT;
        END IF;
        PERFORM 1 FROM job AS j WHERE j.ctid = r.at AND j.state::integer = 2 FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            v_done[r.n] := true;
            c.locked := true;
            CONTINUE;
        END IF;
        v_wanted := v_wanted - 1;
        v_room := v_room - 1;
        IF v_task IS NOT NULL THEN
            v_task_rooms[v_task] := v_task_rooms[v_task] - 1;
        END IF;
        IF v_key IS NOT NULL THEN
            v_key_rooms[v_key] := v_key_rooms[v_key] - 1;
        END IF;
        IF r.suspect THEN
            c.suspects := c.suspects - 1;
        END IF;
        v_met[r.n] := v_met[r.n] + 1;
        v_taken := v_taken || r.at;
        v_tasks := v_tasks || r.task;
        v_keys := v_keys || r.key;
        c.last := v_lanes[r.n];
        c.used := p_used + (r.rank - 1) % l.weights[r.n] + 1;
    END LOOP;
    c.wanted := v_wanted;
    c.queue_room := v_room;
    c.task_rooms := v_task_rooms;
    c.key_rooms := v_key_rooms;
    IF v_taken <> '{}' THEN
        c.gave := true;
        c.taken := c.taken || v_taken;
        c.started_tasks := c.started_tasks || v_tasks;
        c.started_keys := c.started_keys || v_keys;
    END IF;
    SELECT array_agg(u.lane) FILTER (WHERE NOT u.done AND u.met < u.most AND v_ended),
        c.done || coalesce(array_agg(u.lane) FILTER (WHERE u.done OR (u.met < u.most AND v_ended)), '{}')
    INTO v_drained, c.done
    FROM unnest(v_lanes, v_done, v_met, v_mosts) AS u (lane, done, met, most);
    IF v_drained IS NOT NULL THEN
        PERFORM close_lanes_v1(q.name, p_priority, v_drained, p_excluded || v_taken);
    END IF;
    RETURN c;
END $$;

-- One priority: its open lanes take turns. A lane gives as many jobs in its turn as its key's weight says.
--   p_turns     {priority: [lane, used]}: where the claimant stopped. That lane goes on with the turn that was cut short.
--   p_cursors   of the plain lanes; p_lanes: of busy lanes with a group, {"priority:lane": seq}
CREATE FUNCTION choose_in_priority_v1(
    c choice_v1, q queue, p_priority smallint, p_turns jsonb, p_cursors bigint[], p_lanes jsonb, p_excluded tid[],
    p_now bigint
) RETURNS choice_v1 LANGUAGE plpgsql AS $$
DECLARE
    l pass_v1;
    v_used integer;
    v_rounds integer;
    v_lanes integer := least(c.wanted, 1000) + 1;
BEGIN
    c.last := p_turns -> p_priority::text ->> 0;
    c.used := coalesce((p_turns -> p_priority::text ->> 1)::integer, 0);
    c.gave := false;
    c.done := '{}';
    LOOP
        EXIT WHEN c.wanted <= 0 OR c.queue_room <= 0;
        v_used := 0;
        v_rounds := 1;
        l := NULL;
        IF c.last IS NOT NULL AND q.weights <> '{}' THEN
            l := same_lane_v1(c, q, p_priority);
            v_used := c.used;
        END IF;
        IF l.lanes IS NULL THEN
            v_used := 0;
            l := next_lanes_v1(c, q, p_priority, v_lanes);
            v_lanes := least(2 * v_lanes, 1000);  -- more at a time while they give nothing
            EXIT WHEN l.lanes IS NULL;
            IF l.whole THEN
                v_rounds := (c.wanted - 1) / (SELECT sum(w) FROM unnest(l.weights) AS w)::integer + 1;
            END IF;
        END IF;
        c := take_v1(c, l, q, p_priority, v_rounds, v_used, p_cursors, p_lanes, p_excluded || c.taken, p_now);
    END LOOP;
    IF c.gave THEN
        c.turns := c.turns || jsonb_build_object(p_priority, jsonb_build_array(c.last, c.used));
    END IF;
    RETURN c;
END $$;

-- The first priority after another one that has open lanes; NULL: none.
CREATE FUNCTION next_priority_v1(c choice_v1, q queue, p_after integer) RETURNS smallint LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT min(e.priority) FROM unnest(c.open_tasks) AS t (name)
        CROSS JOIN LATERAL (
            SELECT priority FROM lane
            WHERE queue = q.name AND task = t.name AND NOT parked AND priority > p_after::smallint
            ORDER BY queue, task, priority, lane LIMIT 1  -- `lane`: an order that no other index gives
        ) AS e);
END $$;

-- Choose up to p_most jobs of a laned queue: by priority; in a priority lanes by turns, from where the claimant stopped; in a
-- lane by seq, while its gates have room. Logs the starts, and parks the gates that are full.
CREATE FUNCTION choose_by_turns_v1(
    q queue, p_most integer, p_suspects integer, p_turns jsonb, p_cursors bigint[], p_lanes jsonb, p_excluded tid[],
    p_tasks text[], p_keys text[], p_now bigint
) RETURNS choice_v1 LANGUAGE plpgsql AS $$
DECLARE
    c choice_v1 := new_choice_v1(q, p_most, p_suspects, p_tasks, p_keys, p_now);
    v_priority smallint := -1;
BEGIN
    LOOP
        EXIT WHEN c.wanted <= 0 OR c.queue_room <= 0;
        v_priority := next_priority_v1(c, q, v_priority);
        EXIT WHEN v_priority IS NULL;
        c := choose_in_priority_v1(c, q, v_priority, p_turns, p_cursors, p_lanes, p_excluded, p_now);
    END LOOP;
    PERFORM log_starts_v1(q, c.started_tasks, c.started_keys, p_now);
    PERFORM park_v1(q, 'queue', '{""}', ARRAY[c.queue_room], p_now);
    PERFORM park_v1(q, 'task', c.tasks, c.task_rooms, p_now);
    PERFORM park_v1(q, 'key', c.keys, c.key_rooms, p_now);
    RETURN c;
END $$;
