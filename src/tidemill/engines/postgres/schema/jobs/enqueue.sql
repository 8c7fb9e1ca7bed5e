-- Storing new jobs.

-- Queues come into being with default options.
CREATE FUNCTION make_queues_v1(p_names text[], p_now bigint) RETURNS void LANGUAGE sql AS $$
    INSERT INTO queue (name, created_at) SELECT DISTINCT n COLLATE "C", p_now FROM unnest(p_names) AS n
    WHERE NOT EXISTS (SELECT 1 FROM queue WHERE name = n) ORDER BY 1 ON CONFLICT DO NOTHING
$$;

-- Jobs without parents, in the order of the arrays: the ids that were stored. Arrays may be shorter than that of
-- the ids, which saves most of their way here: unnest fills up with NULL. What may be NULL is NULL for all then;
-- of the others (task, queue, priority, codec, attempts) the one value counts for all. seq is drawn below
-- everything else, so that it follows the order of the call.
CREATE FUNCTION store_v1(
    p_ids bytea[], p_tasks text[], p_queues text[], p_priorities smallint[], p_bodies bytea[], p_codecs smallint[],
    p_headers bytea[], p_keys text[], p_delays bigint[], p_ats bigint[], p_expires bigint[], p_timeouts bigint[],
    p_retries bytea[], p_attempts integer[], p_on_deads text[], p_schedules text[], p_now bigint,
    p_users boolean DEFAULT false, p_uniques text[] DEFAULT NULL, p_untils smallint[] DEFAULT NULL
) RETURNS bytea[] LANGUAGE plpgsql AS $$
DECLARE
    v_created bytea[];
    v_xid xid8;
    v_task text := p_tasks[1];
    v_queue text := p_queues[1];
    v_priority smallint := p_priorities[1];
    v_codec smallint := p_codecs[1];
    v_attempts integer := p_attempts[1];
    v_known bigint;
    v_new boolean := false;
    v_shaped text[];
    v_laned text[];
BEGIN
    v_xid := pg_current_xact_id();  -- before the queues are read: see `reshaped` in claim_v1
    SELECT count(*), coalesce(array_agg(name) FILTER (WHERE shaped), '{}'),
           coalesce(array_agg(name) FILTER (WHERE laned), '{}') INTO v_known, v_shaped, v_laned
    FROM queue WHERE name = ANY (p_queues);
    IF p_users AND current_setting('transaction_isolation') <> 'read committed' THEN
        v_laned := p_queues;  -- it may see options of long ago; what no lane needs, promotes delete
    END IF;
    IF v_known = cardinality(p_queues) OR v_known = (SELECT count(DISTINCT n) FROM unnest(p_queues) AS n) THEN
        NULL;  -- all are known, as nearly always
    ELSIF p_users THEN  -- of a transaction that may stay open: nobody must have to wait for it
        v_new := true;
    ELSE
        PERFORM make_queues_v1(p_queues, p_now);
    END IF;
    WITH stored AS (
        INSERT INTO job (id, born, seq, xid, task, queue, priority, body, codec, headers, key, created_at, due_at,
            ready_at, expires_at, timeout, retry, max_attempts, on_dead, schedule, unique_key, unique_until, state, lane)
        SELECT i.id, i.seq, i.seq, v_xid, coalesce(i.task, v_task), coalesce(i.queue, v_queue),
            coalesce(i.priority, v_priority), i.body, coalesce(i.codec, v_codec), i.headers, coalesce(i.key, ''), p_now,
            CASE WHEN i.due > p_now THEN i.due END, CASE WHEN i.due > p_now THEN NULL ELSE p_now END,
            p_now + i.expires, i.timeout, i.retry, coalesce(i.attempts, v_attempts), i.on_dead, i.schedule, i.uniq, i.till,
            CASE WHEN i.due > p_now THEN 1 ELSE 2 END,
            CASE WHEN v_shaped = '{}' THEN '' WHEN coalesce(i.queue, v_queue) = ANY (v_shaped) THEN (
                SELECT group_of_v1(q.keyed, q.tasks, coalesce(i.task, v_task), coalesce(i.key, ''))
                FROM queue AS q WHERE q.name = coalesce(i.queue, v_queue)
            ) ELSE '' END
        FROM (
            SELECT u.*, coalesce(u.at, p_now + u.delay) AS due, nextval('seq') AS seq
            FROM unnest(p_ids, p_tasks, p_queues, p_priorities, p_bodies, p_codecs, p_headers, p_keys, p_delays,
                        p_ats, p_expires, p_timeouts, p_retries, p_attempts, p_on_deads, p_schedules, p_uniques, p_untils)
                AS u (id, task, queue, priority, body, codec, headers, key, delay, at, expires, timeout, retry,
                      attempts, on_dead, schedule, uniq, till)
        ) AS i
        ON CONFLICT (id) DO NOTHING
        RETURNING id
    )
    SELECT array_agg(id) INTO v_created FROM stored;
    IF v_new AND v_created IS NOT NULL THEN  -- a call that stores nothing leaves no queue
        INSERT INTO queue_new (name, created_at)
        SELECT DISTINCT n COLLATE "C", p_now FROM unnest(p_queues) AS n
        WHERE NOT EXISTS (SELECT 1 FROM queue WHERE name = n);
    END IF;
    IF v_laned <> '{}' AND v_created IS NOT NULL THEN
        INSERT INTO lane_new (queue, priority, suspect, lane, task, key, first)
        SELECT j.queue, j.priority, false, j.lane, CASE WHEN q.tasks ? j.task THEN j.task ELSE '' END,
            CASE WHEN q.keyed THEN j.key ELSE '' END, min(j.seq)
        FROM unnest(v_created) AS c (id) JOIN job AS j ON j.id = ANY (ARRAY[c.id]) LEFT JOIN queue AS q ON q.name = j.queue
        WHERE j.state::integer = 2 AND j.queue = ANY (v_laned) GROUP BY 1, 2, 4, 5, 6;
    END IF;
    RETURN coalesce(v_created, '{}');
END $$;

-- p_uniques, p_untils: unique keys that the jobs hold already (enqueue_unique_v1).
-- p_children, p_parents: pairs of (position of the child in the call, id of a parent). Answers whether each
-- job was created, and the signals that are still to be sent. p_channel: send them along, if they are few.
CREATE FUNCTION enqueue_v1(
    p_ids bytea[], p_tasks text[], p_queues text[], p_priorities smallint[], p_bodies bytea[], p_codecs smallint[],
    p_headers bytea[], p_keys text[], p_delays bigint[], p_ats bigint[], p_expires bigint[], p_timeouts bigint[],
    p_retries bytea[], p_attempts integer[], p_on_deads text[], p_schedules text[],
    p_children integer[], p_parents bytea[], p_parent_died text[], p_now bigint, p_channel text DEFAULT NULL,
    p_uniques text[] DEFAULT NULL, p_untils smallint[] DEFAULT NULL,
    OUT created boolean[], OUT signals text[]
) LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint := coalesce(p_now, instant_v1());
    v_stored bytea[];
    v_parents bytea[];
    v_missing bytea;
    n integer;
BEGIN
    signals := '{}';
    IF p_children = '{}' THEN
        v_stored := store_v1(p_ids, p_tasks, p_queues, p_priorities, p_bodies, p_codecs, p_headers, p_keys, p_delays,
                             p_ats, p_expires, p_timeouts, p_retries, p_attempts, p_on_deads, p_schedules, v_now,
                             false, p_uniques, p_untils);
        IF cardinality(v_stored) = cardinality(p_ids) THEN
            created := array_fill(true, ARRAY[cardinality(p_ids)]);
        ELSE  -- the first of equal ids counts
            created := ARRAY(
                SELECT u.id = ANY (v_stored) AND NOT u.id = ANY (p_ids[:u.position - 1])
                FROM unnest(p_ids) WITH ORDINALITY AS u (id, position) ORDER BY u.position
            );
        END IF;
        IF v_stored <> '{}' THEN
            signals := ARRAY(SELECT DISTINCT 'ready:' || queue FROM unnest(p_queues) AS queue);
            IF p_channel IS NOT NULL AND cardinality(signals) < 20 THEN
                PERFORM pg_notify(p_channel, to_json(signals)::text);
                signals := '{}';
            END IF;
        END IF;
        RETURN;
    END IF;
    PERFORM lock_jobs_v1(p_parents, 0, 6);
    UPDATE job SET back = true WHERE id = ANY (p_parents) AND state::integer = 2 AND NOT back;
    -- a claim that comes for a parent now passes it, because we have it locked: it has to come again
    signals := ARRAY(SELECT DISTINCT 'ready:' || queue FROM job WHERE id = ANY (p_parents) AND state::integer = 2);
    created := '{}';
    FOR n IN 1 .. cardinality(p_ids) LOOP
        IF EXISTS (SELECT 1 FROM job WHERE id = p_ids[n]) THEN
            created := created || false;
            CONTINUE;
        END IF;
        v_parents := ARRAY(SELECT p FROM unnest(p_children, p_parents) AS u (c, p) WHERE c = n);
        SELECT p INTO v_missing FROM unnest(v_parents) AS p WHERE NOT EXISTS (SELECT 1 FROM job WHERE id = p) LIMIT 1;
        IF FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'PN001', MESSAGE = p_tasks[n] || ' waits for ' || show_id_v1(v_missing)
                || ', which the engine does not have: enqueue it first, or earlier in the same call';
        END IF;
        IF v_parents = '{}' THEN
            v_stored := store_v1(p_ids[n:n], p_tasks[n:n], p_queues[n:n], p_priorities[n:n], p_bodies[n:n],
                p_codecs[n:n], p_headers[n:n], p_keys[n:n], p_delays[n:n], p_ats[n:n], p_expires[n:n],
                p_timeouts[n:n], p_retries[n:n], p_attempts[n:n], p_on_deads[n:n], p_schedules[n:n], v_now,
                false, p_uniques[n:n], p_untils[n:n]);
            created := created || (v_stored <> '{}');
            signals := signals || ('ready:' || p_queues[n]);
            CONTINUE;
        END IF;
        PERFORM make_queues_v1(p_queues[n:n], v_now);
        INSERT INTO job (id, born, seq, task, queue, priority, body, codec, headers, key, created_at, due_at,
            expires_at, timeout, retry, max_attempts, on_dead, schedule, unique_key, unique_until, state, parent_died)
        SELECT p_ids[n], s, s, p_tasks[n], p_queues[n], p_priorities[n], p_bodies[n], p_codecs[n], p_headers[n],
            p_keys[n], v_now,
            CASE WHEN coalesce(p_ats[n], v_now + p_delays[n]) > v_now THEN coalesce(p_ats[n], v_now + p_delays[n]) END,
            v_now + p_expires[n], p_timeouts[n], p_retries[n], p_attempts[n], p_on_deads[n], p_schedules[n],
            p_uniques[n], p_untils[n], 0, p_parent_died[n]
        FROM nextval('seq') AS s
        ON CONFLICT (id) DO NOTHING;
        created := created || FOUND;
        IF FOUND THEN
            signals := signals || wait_for_v1(p_ids[n], v_parents, p_parent_died[n], v_now);
            IF EXISTS (SELECT 1 FROM job WHERE id = p_ids[n] AND state::integer = 0) THEN
                signals := signals || named_all_v1(p_ids[n:n]);
            END IF;
        END IF;
    END LOOP;
END $$;

-- The same in a transaction of the user's own, with the signal in it. The ids that were stored.
CREATE FUNCTION enqueue_here_v1(
    p_ids bytea[], p_tasks text[], p_queues text[], p_priorities smallint[], p_bodies bytea[], p_codecs smallint[],
    p_headers bytea[], p_keys text[], p_delays bigint[], p_ats bigint[], p_expires bigint[], p_timeouts bigint[],
    p_retries bytea[], p_attempts integer[], p_on_deads text[], p_schedules text[], p_channel text
) RETURNS bytea[] LANGUAGE plpgsql AS $$
DECLARE
    v_stored bytea[];
BEGIN
    v_stored := store_v1(p_ids, p_tasks, p_queues, p_priorities, p_bodies, p_codecs, p_headers, p_keys, p_delays,
                         p_ats, p_expires, p_timeouts, p_retries, p_attempts, p_on_deads, p_schedules, instant_v1(),
                         true);
    PERFORM pg_notify(p_channel, to_json(ARRAY['ready:' || queue])::text)
    FROM (SELECT DISTINCT queue FROM unnest(p_queues) AS queue) AS named;
    RETURN v_stored;
END $$;
