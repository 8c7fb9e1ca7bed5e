-- What is said of queues: their options in two layers, and pauses.

-- The queue of this name; one that so far only a user's transaction has named is made now.
CREATE FUNCTION find_queue_v1(p_name text, p_now bigint) RETURNS queue LANGUAGE plpgsql AS $$
DECLARE
    q queue;
BEGIN
    SELECT * INTO q FROM queue WHERE name = p_name;
    IF NOT FOUND AND EXISTS (SELECT 1 FROM queue_new WHERE name = p_name) THEN
        INSERT INTO queue (name, created_at)
        SELECT p_name, min(created_at) FROM queue_new WHERE name = p_name
        ON CONFLICT DO NOTHING;
        SELECT * INTO q FROM queue WHERE name = p_name;
    END IF;
    RETURN q;
END $$;

CREATE FUNCTION existing_queue_v1(p_name text) RETURNS queue LANGUAGE plpgsql AS $$
DECLARE
    q queue := find_queue_v1(p_name, instant_v1());
BEGIN
    IF q.name IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'PN003', MESSAGE = format('there is no queue %L; there are: %s', p_name,
            coalesce((SELECT string_agg(name, ', ') FROM (SELECT name FROM queue ORDER BY name LIMIT 10) AS known), 'none yet'));
    END IF;
    RETURN q;
END $$;

-- Change the layers of a queue's options, if their version is still p_version; otherwise the answer is NULL. p_options:
-- what they come to now; NULL: the options in force stay, and no queue is locked.
CREATE FUNCTION change_layers_v1(
    p_name text, p_create boolean, p_version bigint, p_layers bytea, p_options bytea, p_flat jsonb, p_by text,
    p_action text, p_detail text, p_now bigint
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_signals text[] := '{}';
BEGIN
    INSERT INTO queue_layers (name, layers, version) VALUES (p_name, p_layers, 1)
    ON CONFLICT (name) DO UPDATE SET layers = excluded.layers, version = queue_layers.version + 1
    WHERE queue_layers.version = p_version;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF p_create THEN
        INSERT INTO queue (name, created_at)
        SELECT p_name, coalesce(min(created_at), p_now, instant_v1()) FROM queue_new WHERE name = p_name
        ON CONFLICT DO NOTHING;
    ELSE
        PERFORM existing_queue_v1(p_name);
    END IF;
    IF p_options IS NOT NULL THEN
        v_signals := put_options_v1(p_name, p_options, p_flat, p_now);
    END IF;
    PERFORM audit_v1(p_by, p_action, p_name, p_detail, coalesce(p_now, instant_v1()));
    RETURN v_signals;
END $$;

-- Replace a queue's options. p_flat: the columns that are worked out from them. Claims in flight are waited for,
-- so none counts by the old limit.
CREATE FUNCTION put_options_v1(p_name text, p_options bytea, p_flat jsonb, p_now bigint) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    q queue;
    v queue;
    v_limit jsonb;
    v_task text;
    v_key text;
BEGIN
    PERFORM pg_advisory_xact_lock(lock_v1('queue', p_name));
    SELECT * INTO q FROM queue WHERE name = p_name FOR UPDATE;
    v := jsonb_populate_record(q, p_flat);
    IF (q.keyed, q.key_limited, ARRAY(SELECT jsonb_object_keys(q.tasks) ORDER BY 1))
       IS DISTINCT FROM (v.keyed, v.key_limited, ARRAY(SELECT jsonb_object_keys(v.tasks) ORDER BY 1)) THEN
        v.stale := '[]';
        v.reshaped := '18446744073709551615';  -- the next claim dates it: see claim_v1
        DELETE FROM lane WHERE queue = p_name;
    ELSIF q.laned <> v.laned THEN  -- its waiting jobs stay where they are
        v.reshaped := CASE WHEN v.laned THEN '18446744073709551615' ELSE v.reshaped END;
        DELETE FROM lane WHERE queue = p_name;
    ELSIF v.counts_runs AND NOT q.counts_runs THEN  -- runs that end in older transactions leave no row in `freed`
        v.reshaped := '18446744073709551615';
    END IF;
    UPDATE queue SET options = p_options, version = version + 1, keyed = v.keyed, shaped = v.shaped,
        limited = v.limited, laned = v.laned, key_limited = v.key_limited, counts_runs = v.counts_runs,
        concurrency = v.concurrency, rate_count = v.rate_count, rate_window = v.rate_window,
        key_concurrency = v.key_concurrency, key_rate_count = v.key_rate_count, key_rate_window = v.key_rate_window,
        limits = v.limits, tasks = v.tasks, starts = v.starts, weights = v.weights, keep_body = v.keep_body,
        keep_ages = v.keep_ages, keep_counts = v.keep_counts, keeps_all = v.keeps_all, stale = v.stale,
        reshaped = v.reshaped
    WHERE name = p_name;
    PERFORM rescale_starts_v1(p_name, 'queue', '', q.rate_window, v.rate_window);
    PERFORM rescale_starts_v1(p_name, 'key', NULL, q.key_rate_window, v.key_rate_window,
                              ARRAY(SELECT jsonb_object_keys(q.limits || v.limits)));
    FOR v_key IN SELECT jsonb_object_keys(q.limits || v.limits) LOOP
        PERFORM rescale_starts_v1(p_name, 'key', v_key, (key_limit_v1(q, v_key)).per, (key_limit_v1(v, v_key)).per);
    END LOOP;
    FOR v_task, v_limit IN SELECT * FROM jsonb_each(q.tasks) LOOP
        PERFORM rescale_starts_v1(p_name, 'task', v_task, (v_limit ->> 2)::bigint, (v.tasks -> v_task ->> 2)::bigint);
    END LOOP;
    IF q.limited OR v.limited THEN
        PERFORM open_all_gates_v1(p_name);
        IF v.limited THEN
            PERFORM count_runs_v1(p_name);
        END IF;
    END IF;
    RETURN ARRAY['ready:' || p_name, 'options'];
END $$;

-- Jobs that ran before there was a limit count from now on. A user's transaction may have locked such a job for minutes, and we
-- hold the queue's lock: its run counts when the transactions of that moment have ended (prepare_lanes_v1).
CREATE FUNCTION count_runs_v1(p_queue text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_runs bytea[] := ARRAY(SELECT id FROM job WHERE token IS NOT NULL AND queue = p_queue AND NOT gated);
BEGIN
    IF v_runs <> '{}' THEN
        UPDATE job SET gated = true WHERE id = ANY (lock_soon_v1(v_runs));
    END IF;
END $$;

-- A rate has another window now: what its log holds counts by the new one. An entry stands for starts up to
-- the end of its step. A NULL name: every key but p_except.
CREATE FUNCTION rescale_starts_v1(
    p_queue text, p_kind text, p_name text, p_before bigint, p_after bigint, p_except text[] DEFAULT '{}'
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF p_before <> p_after THEN
        WITH gone AS (
            DELETE FROM start
            WHERE queue = p_queue AND kind = p_kind AND (p_name IS NULL OR name = p_name) AND name <> ALL (p_except)
            RETURNING name, step, count
        )
        INSERT INTO start (queue, kind, name, step, count, until)
        SELECT p_queue, p_kind, name, step + greatest(1, p_before / 1000) - greatest(1, p_after / 1000), count,
            step + greatest(1, p_before / 1000) + p_after + 30000
        FROM gone
        ON CONFLICT (queue, kind, name, step) DO UPDATE SET count = start.count + excluded.count, until = excluded.until;
    END IF;
END $$;

CREATE FUNCTION pause_v1(p_name text, p_by text, p_why text, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(lock_v1('queue', p_name));
    v_now := coalesce(p_now, instant_v1());
    PERFORM existing_queue_v1(p_name);
    UPDATE queue SET paused_at = v_now, paused_by = p_by, paused_why = p_why, version = version + 1
    WHERE name = p_name AND paused_at IS NULL;
    IF FOUND THEN
        PERFORM audit_v1(p_by, 'pause', p_name, p_why, v_now);
    END IF;
END $$;

CREATE FUNCTION resume_v1(p_name text, p_by text, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(lock_v1('queue', p_name));
    PERFORM existing_queue_v1(p_name);
    UPDATE queue SET paused_at = NULL, paused_by = '', paused_why = '', version = version + 1
    WHERE name = p_name AND paused_at IS NOT NULL;
    IF NOT FOUND THEN
        RETURN '{}';
    END IF;
    PERFORM audit_v1(p_by, 'resume', p_name, '', coalesce(p_now, instant_v1()));
    RETURN ARRAY['ready:' || p_name];
END $$;
