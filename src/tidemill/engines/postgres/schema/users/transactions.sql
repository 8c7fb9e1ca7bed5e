-- What runs in a user's own transaction: which namespace its connection leads to, and completing a run.
--
-- Such a transaction may stay open for minutes, or for hours if its host vanished. After a completion it holds the job's
-- row. So a step that is not about that very job must get by without it: sweeps, retirements and watches lock what they
-- can get soon, and leave the rest for the next time.

-- An identity by which this namespace differs from every other one, and from a copy of itself.
CREATE FUNCTION identity_v1() RETURNS text LANGUAGE sql STABLE AS $$
    SELECT m.value || '/' || d.oid FROM meta AS m, pg_database AS d
    WHERE m.name = 'identity' AND d.datname = current_database()
$$;

-- True if this is the namespace that the caller means; otherwise PN004.
CREATE FUNCTION check_identity_v1(p_identity text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF p_identity IS DISTINCT FROM identity_v1() THEN
        RAISE EXCEPTION USING ERRCODE = 'PN004', MESSAGE = 'this connection leads to another place than the app''s';
    END IF;
    RETURN true;
END $$;

-- Complete one run in the user's transaction: 0 applied, 1 already, 2 stale. What `complete_v1` does for many, but
-- no rows of others are touched: watches stay (they run out), and the next claim updates children.
CREATE FUNCTION complete_here_v1(p_id bytea, p_fence bigint, p_ran bigint, p_result bytea, p_channel text)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    j job;
    q queue;
    v_now bigint;
    v_buried boolean;
    v_small boolean;
BEGIN
    SELECT * INTO j FROM job WHERE id = p_id AND token IS NOT DISTINCT FROM p_fence FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN CASE WHEN EXISTS (SELECT 1 FROM job WHERE id = p_id AND settled_fence = p_fence) THEN 1 ELSE 2 END;
    END IF;
    SELECT * INTO q FROM queue WHERE name = j.queue;
    v_now := instant_v1();
    v_buried := keeps_nothing_v1(q, 4);
    v_small := v_buried OR NOT q.keep_body;
    UPDATE job SET state = 4, token = NULL, attempts = attempts + 1, settled_fence = p_fence, gated = false,
        expires_at = NULL, started_at = coalesce(started_at, v_now - p_ran), ended_at = v_now,
        form = CASE WHEN v_buried THEN 2 WHEN v_small THEN 1 ELSE form END,
        body = CASE WHEN NOT v_small THEN body END, result = CASE WHEN NOT v_small THEN p_result END
    WHERE id = p_id;
    PERFORM count_finished_v1(j.queue, 1, 0, 0, 0, v_now);
    IF j.unique_until <= 1 THEN
        PERFORM free_key_v1(j);
    END IF;
    IF v_buried THEN
        PERFORM bury_v1(ARRAY[p_id]);
    END IF;
    IF j.gated THEN  -- whatever gates the queue has: this snapshot may be older than a change of its options
        INSERT INTO freed (queue, task, key) VALUES (j.queue, j.task, j.key);
    END IF;
    IF j.has_children THEN
        INSERT INTO ended_parent (parent, state) VALUES (p_id, 4);
    END IF;
    PERFORM pg_notify(p_channel, to_json(ARRAY[s.signal])::text) FROM (
        SELECT 'ended:' || waiter || chr(10) || encode(p_id, 'hex') AS signal FROM watch
        WHERE job = p_id AND until > v_now
        UNION ALL SELECT 'ready:' || j.queue WHERE j.gated
        UNION ALL SELECT 'ready:' || c.queue FROM wait AS w JOIN job AS c ON c.id = ANY (ARRAY[w.child])
        WHERE w.parent = p_id AND j.has_children
    ) AS s;
    RETURN 0;
END $$;

-- What became of runs: 0 settled, 1 open, 2 free, 3 gone. Never waits.
CREATE FUNCTION fates_v1(p_ids bytea[], p_fences bigint[]) RETURNS integer[] LANGUAGE plpgsql AS $$
DECLARE
    v_fates integer[] := '{}';
    v_token bigint;
    v_settled bigint;
BEGIN
    FOR n IN 1 .. cardinality(p_ids) LOOP
        SELECT token, settled_fence INTO v_token, v_settled FROM job WHERE id = p_ids[n];
        IF v_token IS NOT DISTINCT FROM p_fences[n] THEN
            PERFORM 1 FROM job WHERE id = p_ids[n] AND token IS NOT DISTINCT FROM p_fences[n]
            FOR NO KEY UPDATE SKIP LOCKED;
            v_fates := v_fates || CASE WHEN FOUND THEN 2 ELSE 1 END;
        ELSE
            v_fates := v_fates || CASE WHEN v_settled = p_fences[n] THEN 0 ELSE 3 END;
        END IF;
    END LOOP;
    RETURN v_fates;
END $$;
