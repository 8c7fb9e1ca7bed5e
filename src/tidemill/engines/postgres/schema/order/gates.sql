-- Gates: the limits of a queue, of its tasks and of its keys. A gate has room for so many jobs: by concurrency (how many
-- run), by rate (how many started in a window), or both. Everything here runs under the queue's exclusive lock, so what
-- was counted stays true until the commit.

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
            FROM (SELECT 1 FROM job WHERE gated::integer = 1 AND queue = p_queue AND task = p_name LIMIT p_concurrency) AS held;
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

-- model.gate.opens_at: when a rate that is used up allows a start again; NULL if it is not used up, or if there is none. In
-- PL/pgSQL, because a function in SQL is planned by every call.
CREATE FUNCTION rate_opens_at_v1(p_queue text, p_kind text, p_name text, p_count bigint, p_window bigint, p_now bigint)
RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    IF p_count IS NULL THEN
        RETURN NULL;
    END IF;
    RETURN (
        SELECT min(step) + greatest(1, p_window / 1000) + p_window FROM (
            SELECT step, sum(count) OVER () AS total, sum(count) OVER () - sum(count) OVER (ORDER BY step) AS rest
            FROM start
            WHERE queue = p_queue AND kind = p_kind AND name = p_name
              AND step > p_now - greatest(1, p_window / 1000) - p_window
        ) AS counting
        WHERE total >= p_count AND rest < p_count);
END $$;

CREATE TYPE limit_v1 AS (concurrency bigint, count bigint, per bigint);

-- The limit of the jobs of a key: its own, or that of every key.
CREATE FUNCTION key_limit_v1(q queue, p_key text) RETURNS limit_v1 LANGUAGE plpgsql AS $$
DECLARE
    v_own jsonb := q.limits -> p_key;
BEGIN
    IF v_own IS NULL THEN
        RETURN ROW(q.key_concurrency, q.key_rate_count, q.key_rate_window)::limit_v1;
    END IF;
    RETURN ROW((v_own ->> 0)::bigint, (v_own ->> 1)::bigint, (v_own ->> 2)::bigint)::limit_v1;
END $$;

-- The limit of one gate of a queue.
CREATE FUNCTION gate_limit_v1(q queue, p_kind text, p_name text) RETURNS limit_v1 LANGUAGE plpgsql AS $$
DECLARE
    v_task jsonb;
BEGIN
    IF p_kind = 'key' THEN
        RETURN key_limit_v1(q, p_name);
    ELSIF p_kind = 'queue' THEN
        RETURN ROW(q.concurrency, q.rate_count, q.rate_window)::limit_v1;
    END IF;
    v_task := q.tasks -> p_name;
    RETURN ROW((v_task ->> 0)::bigint, (v_task ->> 1)::bigint, (v_task ->> 2)::bigint)::limit_v1;
END $$;

-- The rooms of the gates of keys, in the order of p_keys. p_earlier: the keys of jobs that this claim has chosen, which do not
-- run yet.
CREATE FUNCTION key_rooms_v1(q queue, p_keys text[], p_earlier text[], p_now bigint) RETURNS bigint[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT least(
            1::bigint << 40,
            CASE WHEN l.concurrency IS NOT NULL THEN l.concurrency - cardinality(array_positions(p_earlier, k.key)) - (
                SELECT count(*) FROM (
                    SELECT 1 FROM job WHERE gated AND queue = q.name AND job.key = k.key LIMIT l.concurrency
                ) AS held) END,
            CASE WHEN l.count IS NOT NULL THEN l.count - coalesce((
                SELECT sum(count) FROM start WHERE queue = q.name AND kind = 'key' AND name = k.key
                AND step > p_now - greatest(1, l.per / 1000) - l.per), 0) END)::bigint
        FROM unnest(p_keys) WITH ORDINALITY AS k (key, n)
        CROSS JOIN LATERAL (
            SELECT CASE WHEN o.own IS NULL THEN q.key_concurrency ELSE (o.own ->> 0)::bigint END AS concurrency,
                CASE WHEN o.own IS NULL THEN q.key_rate_count ELSE (o.own ->> 1)::bigint END AS count,
                CASE WHEN o.own IS NULL THEN q.key_rate_window ELSE (o.own ->> 2)::bigint END AS per
            FROM (SELECT q.limits -> k.key AS own) AS o OFFSET 0  -- as key_limit_v1, in this statement
        ) AS l
        ORDER BY k.n);
END $$;

-- Add starts to the log of one kind of rate. An entry stays for START_DELAY (30 ms) after it counts: it tells whether the gate is
-- pressed.
CREATE FUNCTION add_starts_v1(
    p_queue text, p_kind text, p_names text[], p_counts bigint[], p_window bigint, p_now bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO start (queue, kind, name, step, count, until)
    SELECT p_queue, p_kind, u.name, p_now - p_now % greatest(1, p_window / 1000), sum(u.count),
        p_now - p_now % greatest(1, p_window / 1000) + greatest(1, p_window / 1000) + p_window + 30000
    FROM unnest(p_names, p_counts) AS u (name, count) GROUP BY u.name
    ON CONFLICT (queue, kind, name, step) DO UPDATE SET count = start.count + excluded.count, until = excluded.until;
END $$;

-- Log what starts: the task and the key of each job. Only gates with a rate have a log.
CREATE FUNCTION log_starts_v1(q queue, p_tasks text[], p_keys text[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_name text;
    v_limit jsonb;
    v_window bigint;
    v_keys text[];
BEGIN
    IF p_tasks = '{}' THEN
        RETURN;
    END IF;
    IF q.rate_count IS NOT NULL THEN
        PERFORM add_starts_v1(q.name, 'queue', ARRAY[''], ARRAY[cardinality(p_tasks)::bigint], q.rate_window, p_now);
    END IF;
    FOR v_name, v_limit IN SELECT * FROM jsonb_each(q.tasks) LOOP
        IF v_limit ->> 1 IS NOT NULL AND v_name = ANY (p_tasks) THEN
            PERFORM add_starts_v1(q.name, 'task', ARRAY[v_name],
                ARRAY[(SELECT count(*) FROM unnest(p_tasks) AS t WHERE t = v_name)], (v_limit ->> 2)::bigint, p_now);
        END IF;
    END LOOP;
    IF q.limits <> '{}' THEN
        FOR v_window, v_keys IN
            SELECT (l.own).per, array_agg(l.key)
            FROM (SELECT k.key, key_limit_v1(q, k.key) AS own FROM unnest(p_keys) AS k (key)) AS l
            WHERE (l.own).count IS NOT NULL GROUP BY 1
        LOOP
            PERFORM add_starts_v1(q.name, 'key', v_keys, array_fill(1::bigint, ARRAY[cardinality(v_keys)]), v_window, p_now);
        END LOOP;
    ELSIF q.key_rate_count IS NOT NULL THEN
        PERFORM add_starts_v1(q.name, 'key', p_keys, array_fill(1::bigint, ARRAY[cardinality(p_keys)]),
                              q.key_rate_window, p_now);
    END IF;
END $$;

-- Park the gates of one kind that have no room: claims pass them until a holder goes, or until the rate opens.
CREATE FUNCTION park_v1(q queue, p_kind text, p_names text[], p_rooms bigint[], p_now bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF NOT 0 >= ANY (p_rooms) THEN
        RETURN;
    END IF;
    INSERT INTO parked (queue, kind, name, wake_at)
    SELECT q.name, p_kind, u.name, rate_opens_at_v1(q.name, p_kind, u.name, (u.own).count, (u.own).per, p_now)
    FROM (
        SELECT name, gate_limit_v1(q, p_kind, name) AS own FROM unnest(p_names, p_rooms) AS g (name, room) WHERE room <= 0
    ) AS u
    ON CONFLICT (queue, kind, name) DO UPDATE SET wake_at = excluded.wake_at;
    IF p_kind = 'key' THEN
        PERFORM mark_lanes_v1(q.name, ARRAY(SELECT u.name FROM unnest(p_names, p_rooms) AS u (name, room) WHERE u.room <= 0), true);
    END IF;
END $$;

-- model.gate.pressed: whether more permits than a rate gives were taken within what counts and START_DELAY before.
CREATE FUNCTION pressed_v1(p_queue text, p_kind text, p_name text, p_count bigint, p_window bigint, p_now bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN p_count IS NOT NULL AND p_count < (
        SELECT sum(count) FROM start WHERE queue = p_queue AND kind = p_kind AND name = p_name
        AND step > p_now - greatest(1, p_window / 1000) - p_window - 30000);
END $$;

-- How the jobs of a queue start that were just chosen, by their tasks and keys: [rules, whether a gate is pressed].
CREATE FUNCTION starts_in_v1(q queue, p_tasks text[], p_keys text[], p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    RETURN jsonb_build_array(q.starts, (
        (q.starts -> 'delay')::bigint > 0 AND (
            coalesce(pressed_v1(q.name, 'queue', '', q.rate_count, q.rate_window, p_now), false)
            OR EXISTS (SELECT 1 FROM jsonb_each(q.tasks) AS t (name, said) WHERE t.name = ANY (p_tasks)
                       AND pressed_v1(q.name, 'task', t.name, (t.said ->> 1)::bigint, (t.said ->> 2)::bigint, p_now))
            OR q.key_limited AND EXISTS (
                SELECT 1 FROM (SELECT DISTINCT k AS key FROM unnest(p_keys) AS k) AS u
                CROSS JOIN LATERAL key_limit_v1(q, u.key) AS l
                WHERE pressed_v1(q.name, 'key', u.key, l.count, l.per, p_now)))
    )::integer);
END $$;

CREATE TYPE pair_v1 AS (task text, key text);

-- Whether one job, claimed by its id, may pass all its gates; its starts are logged. p_taken: what this claim
-- has chosen of the queue so far.
CREATE FUNCTION pass_gates_v1(q queue, p_task text, p_key text, p_now bigint, p_taken pair_v1[]) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    v_limit jsonb := q.tasks -> p_task;
    v_own limit_v1 := key_limit_v1(q, p_key);
BEGIN
    IF (q.concurrency IS NOT NULL OR q.rate_count IS NOT NULL) AND room_v1(
        q.name, 'queue', '', q.concurrency, q.rate_count, q.rate_window, cardinality(p_taken), p_now) <= 0
    OR v_limit IS NOT NULL AND room_v1(
        q.name, 'task', p_task, (v_limit ->> 0)::bigint, (v_limit ->> 1)::bigint, (v_limit ->> 2)::bigint,
        (SELECT count(*) FROM unnest(p_taken) AS t WHERE t.task = p_task), p_now) <= 0
    OR q.key_limited AND room_v1(
        q.name, 'key', p_key, v_own.concurrency, v_own.count, v_own.per,
        (SELECT count(*) FROM unnest(p_taken) AS t WHERE t.key = p_key), p_now) <= 0
    THEN
        RETURN false;
    END IF;
    PERFORM log_starts_v1(q, ARRAY[p_task], ARRAY[p_key], p_now);
    RETURN true;
END $$;

-- When time alone opens something in a queue: a due job, a rate.
CREATE FUNCTION queue_opens_at_v1(q queue, p_now bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_next bigint;
    v_name text;
    v_limit jsonb;
BEGIN
    SELECT due_at INTO v_next FROM job WHERE state = 1 AND queue = q.name ORDER BY due_at LIMIT 1;
    IF q.limited THEN
        IF q.rate_count IS NOT NULL THEN
            v_next := least(v_next, rate_opens_at_v1(q.name, 'queue', '', q.rate_count, q.rate_window, p_now));
        END IF;
        FOR v_name, v_limit IN SELECT * FROM jsonb_each(q.tasks) LOOP
            IF v_limit ->> 1 IS NOT NULL THEN
                v_next := least(v_next, rate_opens_at_v1(q.name, 'task', v_name, (v_limit ->> 1)::bigint,
                                                 (v_limit ->> 2)::bigint, p_now));
            END IF;
        END LOOP;
        v_next := least(v_next, (SELECT min(wake_at) FROM parked WHERE queue = q.name AND wake_at IS NOT NULL));
    END IF;
    RETURN v_next;
END $$;
