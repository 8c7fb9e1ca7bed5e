-- Whose turn it is: what a claim chooses in a queue with groups or limits.
--
--     choose_by_turns_v1        one queue: measures its gates, then goes through the priorities
--       choose_in_priority_v1   one priority: the open lanes take turns, round after round
--         take_turn_v1          one turn of one lane: its next jobs, while their gates have room
--
-- The three pass one value to each other, a choice. The calls cost less than what they brought: as one function of 218 lines,
-- with `lane_jobs_v1` planned by every turn, a claim of 100 jobs from 30 keys took 113 ms; it takes 21 ms now. (The fastest
-- of 80 claims each; a claim of one job from a queue with a limit: 5.6 ms before, 1.5 ms now.)

-- What a claim has chosen of one queue, and how much room its gates have left.
CREATE TYPE choice_v1 AS (
    wanted        integer,     -- how many more jobs the claim wants of this queue
    suspects      integer,     -- how many more suspects it may take
    queue_room    bigint,      -- room of the queue's own gate
    tasks         text[],      -- the limited tasks,
    task_rooms    bigint[],    -- and the room of each one's gate
    keys          text[],      -- the keys met so far, if keys are limited,
    key_rooms     bigint[],    -- and the room of each one's gate
    earlier_keys  text[],      -- keys of jobs that the claim chose of this queue before this choice: they hold permits too
    taken         tid[],       -- the chosen jobs, locked, in the order in which they were chosen,
    started_tasks text[],      -- the task of each,
    started_keys  text[],      -- and the key of each
    turns         jsonb,       -- {priority: [lane, used]}: the lane that gave last, and how many jobs of its turn it gave
    misses        integer,     -- how often the next job of a lane was locked by another transaction
    locked        boolean,     -- a lane was left for that reason
    -- of the lane whose turn it is:
    seq           bigint,      -- the lane is read up to here
    used          integer,     -- how many jobs of its turn it has given
    done          boolean,     -- it has nothing more for this claim
    drained       boolean      -- because it is read to its end
);

-- The lanes of one priority in the order of their turns.
CREATE TYPE lanes_v1 AS (lanes text[], tasks text[], weights integer[]);

-- A choice with nothing in it. p_tasks, p_keys: of the jobs that this claim chose of the queue before.
CREATE FUNCTION new_choice_v1(
    q queue, p_most integer, p_suspects integer, p_tasks text[], p_keys text[], p_now bigint
) RETURNS choice_v1 LANGUAGE plpgsql AS $$
DECLARE
    c choice_v1;
    v_name text;
    v_limit jsonb;
BEGIN
    c.wanted := p_most;
    c.suspects := p_suspects;
    c.queue_room := CASE WHEN q.concurrency IS NULL AND q.rate_count IS NULL THEN 1::bigint << 40 ELSE
        room_v1(q.name, 'queue', '', q.concurrency, q.rate_count, q.rate_window, cardinality(p_tasks), p_now) END;
    c.tasks := '{}';
    c.task_rooms := '{}';
    c.keys := '{}';
    c.key_rooms := '{}';
    c.earlier_keys := p_keys;
    c.taken := '{}';
    c.started_tasks := '{}';
    c.started_keys := '{}';
    c.turns := '{}';
    c.misses := 0;
    c.locked := false;
    IF c.queue_room <= 0 THEN
        RETURN c;
    END IF;
    FOR v_name, v_limit IN SELECT * FROM jsonb_each(q.tasks) LOOP
        c.tasks := c.tasks || v_name;
        c.task_rooms := c.task_rooms || room_v1(
            q.name, 'task', v_name, (v_limit ->> 0)::bigint, (v_limit ->> 1)::bigint, (v_limit ->> 2)::bigint,
            (SELECT count(*) FROM unnest(p_tasks) AS t WHERE t = v_name), p_now);
    END LOOP;
    RETURN c;
END $$;

-- The open lanes of a priority, beginning after the lane that gave last. The lane without a group is always among them.
CREATE FUNCTION open_lanes_v1(q queue, p_priority smallint, p_last text, p_suspects boolean) RETURNS lanes_v1
LANGUAGE plpgsql AS $$
DECLARE
    l lanes_v1;
BEGIN
    IF NOT q.shaped THEN
        l.lanes := ARRAY[''];
        l.tasks := ARRAY[''];
        l.weights := ARRAY[1];
        RETURN l;
    END IF;
    SELECT array_agg(o.lane), array_agg(o.task), array_agg(coalesce((q.weights ->> o.key)::integer, 1)) INTO l
    FROM (
        SELECT '' COLLATE "C" AS lane, '' COLLATE "C" AS task, '' COLLATE "C" AS key, p_last IS NOT NULL AS late
        UNION ALL
        SELECT * FROM (
            SELECT DISTINCT ON (lane) lane, task, key, false FROM lane
            WHERE queue = q.name AND priority = p_priority AND NOT parked AND (NOT suspect OR p_suspects)
              AND (p_last IS NULL OR lane > p_last) AND lane <> ''
            ORDER BY lane LIMIT 1000
        ) AS after_last
        UNION ALL
        SELECT * FROM (
            SELECT DISTINCT ON (lane) lane, task, key, true FROM lane
            WHERE queue = q.name AND priority = p_priority AND NOT parked AND (NOT suspect OR p_suspects)
              AND lane <= p_last AND lane <> ''
            ORDER BY lane LIMIT 1000
        ) AS up_to_last
        ORDER BY late, lane
    ) AS o;
    RETURN l;
END $$;

-- One turn of one lane: up to p_most jobs by seq, while their gates have room. p_excluded: jobs that the claim chose
-- before this choice.
CREATE FUNCTION take_turn_v1(
    c choice_v1, q queue, p_priority smallint, p_lane text, p_task text, p_weight integer, p_most integer,
    p_cursor bigint, p_excluded tid[], p_now bigint
) RETURNS choice_v1 LANGUAGE plpgsql AS $$
DECLARE
    r record;
    v_met integer := 0;
    v_task_at integer := array_position(c.tasks, p_task);
    v_key_at integer;
    v_taken tid[] := '{}';
    v_tasks text[] := '{}';
    v_keys text[] := '{}';
BEGIN
    c.done := false;
    FOR r IN SELECT * FROM lane_jobs_v1(q.name, p_priority, p_lane, c.seq, p_cursor, p_most, c.suspects > 0, p_excluded,
                                        p_now) LOOP
        v_met := v_met + 1;
        -- A transaction that does not see the queue's present options stores jobs of a limited task without a group.
        -- While the task's gate is full they are passed over: others behind them may go.
        IF p_lane = '' THEN
            v_task_at := array_position(c.tasks, r.task);
            IF c.task_rooms[v_task_at] <= 0 THEN
                c.seq := r.seq;
                CONTINUE;
            END IF;
        END IF;
        IF q.key_limited THEN
            v_key_at := array_position(c.keys, r.key);
            IF v_key_at IS NULL THEN
                c.keys := c.keys || r.key;
                c.key_rooms := c.key_rooms || key_room_v1(q, r.key, c.earlier_keys, p_now);
                v_key_at := cardinality(c.keys);
            END IF;
        END IF;
        IF c.queue_room <= 0 OR c.task_rooms[v_task_at] <= 0 OR c.key_rooms[v_key_at] <= 0 THEN
            c.done := true;
            EXIT;
        END IF;
        IF r.suspect AND c.suspects <= 0 THEN
            c.seq := r.seq;
            CONTINUE;
        END IF;
        -- Locked before it counts. A gate that is parked for a job which then cannot be taken (it was cancelled, or
        -- got a child) would never open again. The lane tries a locked job again in its next turns, three times in
        -- all lanes together, then leaves it to the next claim. No job behind it passes.
        PERFORM 1 FROM job AS j WHERE j.ctid = r.at AND j.state::integer = 2 FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND THEN
            c.misses := c.misses + 1;
            c.done := c.misses > 3;
            c.locked := c.locked OR c.done;
            v_met := p_most;
            EXIT;
        END IF;
        c.seq := r.seq;
        c.queue_room := c.queue_room - 1;
        IF v_task_at IS NOT NULL THEN
            c.task_rooms[v_task_at] := c.task_rooms[v_task_at] - 1;
        END IF;
        IF v_key_at IS NOT NULL THEN
            c.key_rooms[v_key_at] := c.key_rooms[v_key_at] - 1;
        END IF;
        c.suspects := c.suspects - r.suspect::integer;
        c.wanted := c.wanted - 1;
        c.used := c.used % p_weight + 1;
        v_taken := v_taken || r.at;
        v_tasks := v_tasks || r.task;
        v_keys := v_keys || r.key;
    END LOOP;
    c.drained := NOT c.done AND v_met < p_most;
    c.done := c.done OR c.drained;
    IF v_taken <> '{}' THEN
        c.taken := c.taken || v_taken;
        c.started_tasks := c.started_tasks || v_tasks;
        c.started_keys := c.started_keys || v_keys;
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
    v_last text := p_turns -> p_priority::text ->> 0;
    v_used integer := coalesce((p_turns -> p_priority::text ->> 1)::integer, 0);
    v_goes_on boolean := v_last IS NOT NULL;  -- the first round: only the lane that was cut short
    l lanes_v1 := open_lanes_v1(q, p_priority, v_last, c.suspects > 0);
    v_count integer := cardinality(l.lanes);
    v_read bigint[] := array_fill(-1::bigint, ARRAY[v_count]);
    v_done boolean[] := array_fill(false, ARRAY[v_count]);
    v_drained text[] := '{}';
    v_more boolean;
    v_cursor bigint;
    v_before integer;
    v_gave text;
    v_gave_used integer;
BEGIN
    LOOP
        v_more := false;
        FOR i IN 1 .. v_count LOOP
            CONTINUE WHEN v_done[i];
            IF NOT v_goes_on THEN
                v_used := 0;
            ELSIF l.lanes[i] <> v_last OR v_used >= l.weights[i] THEN
                CONTINUE;
            END IF;
            IF c.task_rooms[array_position(c.tasks, l.tasks[i])] <= 0 THEN
                v_done[i] := true;
                CONTINUE;
            END IF;
            v_cursor := coalesce(CASE WHEN l.lanes[i] = '' THEN p_cursors[2 * p_priority + 1] ELSE
                (p_lanes ->> (p_priority || ':' || l.lanes[i]))::bigint END, 0);
            v_before := c.wanted;
            c.seq := v_read[i];
            c.used := v_used;
            c := take_turn_v1(
                c, q, p_priority, l.lanes[i], l.tasks[i], l.weights[i],
                CASE WHEN v_count = 1 THEN c.wanted ELSE least(l.weights[i] - v_used, c.wanted) END,
                v_cursor, p_excluded, p_now);
            v_read[i] := c.seq;
            v_used := c.used;
            v_done[i] := c.done;
            IF c.wanted < v_before THEN
                v_gave := l.lanes[i];
                v_gave_used := c.used;
            END IF;
            IF c.drained AND v_cursor = 0 AND l.lanes[i] <> '' THEN
                v_drained := v_drained || l.lanes[i];
            END IF;
            v_more := v_more OR NOT c.done;
            EXIT WHEN c.wanted <= 0 OR c.queue_room <= 0;
        END LOOP;
        EXIT WHEN c.wanted <= 0 OR c.queue_room <= 0 OR NOT (v_more OR v_goes_on);
        v_goes_on := false;
    END LOOP;
    IF v_gave IS NOT NULL THEN
        c.turns := c.turns || jsonb_build_object(p_priority, jsonb_build_array(v_gave, v_gave_used));
    END IF;
    IF v_drained <> '{}' THEN
        PERFORM close_lanes_v1(q.name, p_priority, v_drained);
    END IF;
    RETURN c;
END $$;

-- Choose up to p_most jobs of a queue with groups or limits: by priority; in a priority lanes by turns, from where the
-- claimant stopped; in a lane by seq, while its gates have room. Logs the starts, and parks the keys whose gates are full.
CREATE FUNCTION choose_by_turns_v1(
    q queue, p_most integer, p_suspects integer, p_turns jsonb, p_cursors bigint[], p_lanes jsonb, p_excluded tid[],
    p_tasks text[], p_keys text[], p_now bigint
) RETURNS choice_v1 LANGUAGE plpgsql AS $$
DECLARE
    c choice_v1 := new_choice_v1(q, p_most, p_suspects, p_tasks, p_keys, p_now);
BEGIN
    FOR n IN 0 .. 10 LOOP
        EXIT WHEN c.wanted <= 0 OR c.queue_room <= 0;
        c := choose_in_priority_v1(c, q, n::smallint, p_turns, p_cursors, p_lanes, p_excluded, p_now);
    END LOOP;
    PERFORM log_starts_v1(q, c.started_tasks, c.started_keys, p_now);
    PERFORM park_keys_v1(q, c.keys, c.key_rooms, p_now);
    RETURN c;
END $$;
