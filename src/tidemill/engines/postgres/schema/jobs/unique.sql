-- Unique keys (decision 0031). A key row is inserted before the job is stored, and deleted with the move that frees it.
-- Enqueue reads a key before it inserts one, so it waits only for a transaction that is storing the same key.

-- A job ends, or starts.
CREATE FUNCTION free_key_v1(j job) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM unique_key AS k WHERE k.task = j.task AND k.key = j.unique_key AND k.job = j.id;
END $$;

-- The same for many, which have ended.
CREATE FUNCTION free_keys_v1(p_ids bytea[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM unique_key AS k USING unnest(p_ids) AS u (id) JOIN job AS j ON j.id = ANY (ARRAY[u.id])
    WHERE k.task = j.task AND k.key = j.unique_key AND k.job = j.id;
END $$;

-- A claim is about to take these rows. Call it only if there are keys that are held until the start.
CREATE FUNCTION free_keys_at_start_v1(p_rows tid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM unique_key AS k USING unnest(p_rows) AS u (at) JOIN job AS j ON j.ctid = u.at
    WHERE k.at_start AND k.task = j.task AND k.key = j.unique_key AND k.job = j.id;
END $$;

-- A job that does not hold its key becomes live; false: another one holds it.
CREATE FUNCTION take_key_v1(j job) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF j.unique_until IS NULL OR j.unique_until = 2 THEN
        RETURN true;
    END IF;
    INSERT INTO unique_key (task, key, job, at_start) VALUES (j.task, j.unique_key, j.id, j.unique_until = 1)
    ON CONFLICT DO NOTHING;
    RETURN FOUND;
END $$;

-- A run ends without an end of its job, which takes its key again if that is free. It waits for nobody: a transaction that
-- is storing the same key may be a user's.
CREATE FUNCTION take_key_again_v1(j job) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_timeout text := current_setting('lock_timeout');
BEGIN
    IF EXISTS (SELECT 1 FROM unique_key AS k WHERE k.task = j.task AND k.key = j.unique_key) THEN
        RETURN;
    END IF;
    BEGIN
        PERFORM set_config('lock_timeout', '1ms', true);
        PERFORM take_key_v1(j);
        PERFORM set_config('lock_timeout', v_timeout, true);
    EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
        NULL;  -- and the setting is as it was
    END;
END $$;

-- A job that waits, and is locked, gets what a call says. p_due: as model.unique.replaced_due has it. p_overdue_stays: a
-- ready job that is not put off keeps its place (debounce).
CREATE FUNCTION replace_v1(
    j job, p_id bytea, p_body bytea, p_codec smallint, p_headers bytea, p_key text, p_priority smallint, p_due bigint,
    p_expires_at bigint, p_overdue_stays boolean, p_now bigint
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    q queue;
    v_state smallint := CASE WHEN j.state = 0 THEN 0 WHEN p_due > p_now THEN 1 ELSE 2 END;
    v_stays boolean := v_state = 2 AND j.state = 2 AND p_overdue_stays;
    v_lane text := j.lane;
    v_seq bigint;
    v_named text[] := CASE WHEN v_state <> j.state THEN named_v1(j, v_state) ELSE '{}' END;
BEGIN
    IF v_state = 2 THEN
        PERFORM pg_current_xact_id();  -- before the queue is read: see `reshaped` in claim_v1
        SELECT * INTO q FROM queue WHERE name = j.queue;
        v_lane := coalesce(group_of_v1(q.keyed, q.tasks, j.task, p_key), '');
    END IF;
    UPDATE job SET body = p_body, codec = p_codec, headers = p_headers, key = p_key, priority = p_priority,
        expires_at = p_expires_at, due_at = CASE WHEN p_due > p_now THEN p_due END, state = v_state, lane = v_lane, aside = false,
        seq = CASE WHEN v_stays OR v_state = 0 THEN job.seq ELSE nextval('seq') END, back = v_stays,
        xid = CASE WHEN v_state = 2 THEN pg_current_xact_id() ELSE job.xid END,
        ready_at = CASE WHEN v_state = 2 AND NOT v_stays THEN p_now ELSE job.ready_at END
    WHERE id = j.id RETURNING seq INTO v_seq;
    IF v_state = 2 AND q.laned THEN
        INSERT INTO lane_new (queue, priority, suspect, lane, task, key, first)
        VALUES (j.queue, p_priority, j.suspect, v_lane, CASE WHEN q.tasks ? j.task THEN j.task ELSE '' END,
                CASE WHEN q.keyed THEN p_key ELSE '' END, CASE WHEN v_stays THEN 9223372036854775807 ELSE v_seq END);
    END IF;
    INSERT INTO replacing (id, job) VALUES (p_id, j.id);
    DELETE FROM replacing WHERE job = j.id AND number <= (
        SELECT r.number FROM replacing AS r WHERE r.job = j.id ORDER BY r.number DESC OFFSET 16 LIMIT 1);
    RETURN v_named || ('ready:' || j.queue);
END $$;

-- enqueue_v1 for a call in which some jobs have unique keys; no id comes twice.
--   p_uniques   JSON: of each job that has a key {n: its position, id, task, key, until, period, conflict, latest}; until: 0
--               end, 1 start, 2 a period; conflict: 0 existing, 1 replace, 2 refuse
--   p_users     in a transaction of a user's: without parents, and nothing is replaced
-- Keys are taken in their order, so that two calls never wait for each other, and before any row is locked. `met`: of each
-- the job that is there. `refused`: the position of a call that must not meet another job; then nothing was stored.
CREATE FUNCTION enqueue_unique_v1(
    p_ids bytea[], p_tasks text[], p_queues text[], p_priorities smallint[], p_bodies bytea[], p_codecs smallint[],
    p_headers bytea[], p_keys text[], p_delays bigint[], p_ats bigint[], p_expires bigint[], p_timeouts bigint[],
    p_retries bytea[], p_attempts integer[], p_on_deads text[], p_schedules text[],
    p_children integer[], p_parents bytea[], p_parent_died text[], p_uniques text, p_users boolean, p_now bigint,
    OUT met bytea[], OUT created boolean[], OUT refused integer, OUT signals text[]
) LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint := coalesce(p_now, instant_v1());
    v_count integer := cardinality(p_ids);
    v_keys text[] := array_fill(NULL::text, ARRAY[cardinality(p_ids)]);
    v_untils smallint[] := array_fill(NULL::smallint, ARRAY[cardinality(p_ids)]);
    v_taken integer[] := '{}';      -- positions whose keys were taken by this call
    v_at integer[];                 -- positions of those that are stored
    v_created boolean[];
    v_stored bytea[];
    v_holder bytea;
    v_at_start boolean;
    v_more text[];
    v_due bigint;
    v_of_call integer;              -- position of the holder
    u record;
    c record;
    j job;
BEGIN
    met := array_fill(NULL::bytea, ARRAY[v_count]);
    signals := '{}';
    FOR u IN SELECT x.n, decode(x.id, 'hex') AS id, x.task, x.key, x.until, x.period, x.conflict, x.latest
             FROM json_to_recordset(p_uniques::json) AS x (n integer, id text, task text, key text, until smallint,
                                                           period bigint, conflict integer, latest bigint)
             ORDER BY x.task COLLATE "C", x.key COLLATE "C", x.n LOOP
        CONTINUE WHEN EXISTS (SELECT 1 FROM job WHERE id = u.id);
        SELECT r.job INTO v_holder FROM replacing AS r WHERE r.id = u.id;
        IF FOUND THEN
            met[u.n] := v_holder;
            CONTINUE;
        END IF;
        LOOP
            IF u.until = 2 THEN
                SELECT k.job, false INTO v_holder, v_at_start FROM unique_period AS k
                WHERE k.task = u.task AND k.key = u.key AND k.until > v_now;
            ELSE
                SELECT k.job, k.at_start INTO v_holder, v_at_start FROM unique_key AS k
                WHERE k.task = u.task AND k.key = u.key;
            END IF;
            IF NOT FOUND THEN
                IF u.until = 2 THEN
                    INSERT INTO unique_period AS k (task, key, job, until) VALUES (u.task, u.key, u.id, v_now + u.period)
                    ON CONFLICT (task, key) DO UPDATE SET job = excluded.job, until = excluded.until
                        WHERE k.until <= v_now;
                ELSE
                    INSERT INTO unique_key (task, key, job, at_start) VALUES (u.task, u.key, u.id, u.until = 1)
                    ON CONFLICT DO NOTHING;
                END IF;
                CONTINUE WHEN NOT FOUND;  -- another call came first, and has committed
                v_taken := v_taken || u.n;
            END IF;
            IF v_holder IS NULL OR v_holder = u.id THEN
                v_keys[u.n] := u.key;
                v_untils[u.n] := u.until;
                EXIT;
            ELSIF u.conflict = 2 AND p_users THEN
                refused := u.n;
                met[u.n] := v_holder;
                EXIT;
            ELSIF u.conflict = 2 THEN  -- some job may have been replaced already
                RAISE EXCEPTION USING ERRCODE = 'PN005', DETAIL = encode(v_holder, 'hex'),
                    MESSAGE = format('the unique key ''%s'' of %s is held', u.key, u.task);
            ELSIF u.conflict = 0 THEN
                met[u.n] := v_holder;
                EXIT;
            END IF;
            SELECT * INTO j FROM job WHERE id = v_holder;
            v_of_call := array_position(p_ids, v_holder);
            IF NOT FOUND AND v_of_call IS NOT NULL THEN  -- it is about to be stored by this very call
                p_bodies[v_of_call] := p_bodies[u.n];
                p_codecs[v_of_call] := p_codecs[u.n];
                p_headers[v_of_call] := p_headers[u.n];
                p_keys[v_of_call] := p_keys[u.n];
                p_priorities[v_of_call] := p_priorities[u.n];
                p_expires[v_of_call] := p_expires[u.n];
                p_ats[v_of_call] := least(coalesce(p_ats[u.n], v_now + p_delays[u.n]), v_now + u.latest);
                INSERT INTO replacing (id, job) VALUES (u.id, v_holder);
                met[u.n] := v_holder;
                EXIT;
            END IF;
            IF u.until = 2 AND (NOT FOUND OR j.state >= 3) OR j.state = 3 AND NOT v_at_start THEN
                met[u.n] := v_holder;
                EXIT;
            END IF;
            SELECT * INTO j FROM job WHERE id = v_holder AND state::integer <= 2 FOR NO KEY UPDATE;
            -- it may have started or ended meanwhile, or waits again without its key: look again
            CONTINUE WHEN NOT FOUND OR (u.until < 2 AND NOT EXISTS (
                SELECT 1 FROM unique_key AS k WHERE k.task = u.task AND k.key = u.key AND k.job = v_holder));
            v_due := least(coalesce(p_ats[u.n], v_now + p_delays[u.n]), j.created_at + u.latest);
            signals := signals || replace_v1(
                j, u.id, p_bodies[u.n], p_codecs[u.n], p_headers[u.n], p_keys[u.n], p_priorities[u.n], v_due,
                v_now + p_expires[u.n], u.latest IS NOT NULL, v_now);
            met[u.n] := v_holder;
            EXIT;
        END LOOP;
        EXIT WHEN refused IS NOT NULL;
    END LOOP;
    IF refused IS NOT NULL THEN
        PERFORM undo_keys_v1(v_taken, p_ids, p_tasks, v_keys, v_untils);
        RETURN;
    END IF;
    v_at := ARRAY(SELECT m.n FROM unnest(met) WITH ORDINALITY AS m (id, n) WHERE m.id IS NULL ORDER BY m.n);
    created := array_fill(false, ARRAY[v_count]);
    IF v_at <> '{}' THEN
        SELECT array_agg(x.a ORDER BY x.n) AS ids, array_agg(x.b ORDER BY x.n) AS tasks, array_agg(x.c ORDER BY x.n) AS queues,
            array_agg(x.d ORDER BY x.n) AS priorities, array_agg(x.e ORDER BY x.n) AS bodies,
            array_agg(x.f ORDER BY x.n) AS codecs, array_agg(x.g ORDER BY x.n) AS headers, array_agg(x.h ORDER BY x.n) AS keys,
            array_agg(x.i ORDER BY x.n) AS delays, array_agg(x.k ORDER BY x.n) AS ats, array_agg(x.l ORDER BY x.n) AS expires,
            array_agg(x.m ORDER BY x.n) AS timeouts, array_agg(x.o ORDER BY x.n) AS retries,
            array_agg(x.p ORDER BY x.n) AS attempts, array_agg(x.q ORDER BY x.n) AS on_deads,
            array_agg(x.r ORDER BY x.n) AS schedules, array_agg(x.s ORDER BY x.n) AS uniques,
            array_agg(x.t ORDER BY x.n) AS untils
        INTO c
        FROM unnest(p_ids, p_tasks, p_queues, p_priorities, p_bodies, p_codecs, p_headers, p_keys, p_delays, p_ats, p_expires,
                    p_timeouts, p_retries, p_attempts, p_on_deads, p_schedules, v_keys, v_untils, met)
            WITH ORDINALITY AS x (a, b, c, d, e, f, g, h, i, k, l, m, o, p, q, r, s, t, met, n)
        WHERE x.met IS NULL;
        IF p_users THEN
            v_stored := store_v1(
                c.ids, c.tasks, c.queues, c.priorities, c.bodies, c.codecs, c.headers, c.keys, c.delays, c.ats, c.expires,
                c.timeouts, c.retries, c.attempts, c.on_deads, c.schedules, v_now, true, c.uniques, c.untils);
            v_created := ARRAY(SELECT i.id = ANY (v_stored) FROM unnest(c.ids) WITH ORDINALITY AS i (id, n) ORDER BY i.n);
        ELSE
            SELECT e.created, e.signals INTO v_created, v_more FROM enqueue_v1(
                c.ids, c.tasks, c.queues, c.priorities, c.bodies, c.codecs, c.headers, c.keys, c.delays, c.ats, c.expires,
                c.timeouts, c.retries, c.attempts, c.on_deads, c.schedules,
                ARRAY(SELECT array_position(v_at, x.n) FROM unnest(p_children) WITH ORDINALITY AS x (n, position)
                      WHERE x.n = ANY (v_at) ORDER BY x.position),
                ARRAY(SELECT x.parent FROM unnest(p_children, p_parents) WITH ORDINALITY AS x (n, parent, position)
                      WHERE x.n = ANY (v_at) ORDER BY x.position),
                ARRAY(SELECT x.died FROM unnest(p_parent_died) WITH ORDINALITY AS x (died, n) WHERE x.n = ANY (v_at)
                      ORDER BY x.n),
                v_now, NULL, c.uniques, c.untils) AS e;
            signals := signals || v_more;
        END IF;
        FOR n IN 1 .. cardinality(v_at) LOOP
            met[v_at[n]] := p_ids[v_at[n]];
            created[v_at[n]] := v_created[n];
        END LOOP;
        IF false = ANY (v_created) THEN  -- the id came into being meanwhile: that job does not hold the key
            PERFORM undo_keys_v1(ARRAY(SELECT t.n FROM unnest(v_taken) AS t (n) WHERE NOT created[t.n]), p_ids, p_tasks,
                                 v_keys, v_untils);
        END IF;
    END IF;
END $$;

-- Keys that this call has taken for jobs which it does not store.
CREATE FUNCTION undo_keys_v1(p_at integer[], p_ids bytea[], p_tasks text[], p_keys text[], p_untils smallint[])
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    FOREACH n IN ARRAY p_at LOOP
        IF p_untils[n] = 2 THEN
            DELETE FROM unique_period AS k WHERE k.task = p_tasks[n] AND k.key = p_keys[n] AND k.job = p_ids[n];
        ELSE
            DELETE FROM unique_key AS k WHERE k.task = p_tasks[n] AND k.key = p_keys[n] AND k.job = p_ids[n];
        END IF;
    END LOOP;
END $$;

-- The same in a transaction of the user's own, with the signal in it.
CREATE FUNCTION enqueue_unique_here_v1(
    p_ids bytea[], p_tasks text[], p_queues text[], p_priorities smallint[], p_bodies bytea[], p_codecs smallint[],
    p_headers bytea[], p_keys text[], p_delays bigint[], p_ats bigint[], p_expires bigint[], p_timeouts bigint[],
    p_retries bytea[], p_attempts integer[], p_on_deads text[], p_schedules text[], p_uniques text, p_channel text,
    OUT met bytea[], OUT created boolean[], OUT refused integer
) LANGUAGE plpgsql AS $$
BEGIN
    SELECT e.met, e.created, e.refused INTO met, created, refused FROM enqueue_unique_v1(
        p_ids, p_tasks, p_queues, p_priorities, p_bodies, p_codecs, p_headers, p_keys, p_delays, p_ats, p_expires,
        p_timeouts, p_retries, p_attempts, p_on_deads, p_schedules, '{}', '{}', '{}', p_uniques, true, NULL) AS e;
    IF true = ANY (created) THEN
        PERFORM pg_notify(p_channel, to_json(ARRAY['ready:' || queue])::text)
        FROM (SELECT DISTINCT queue FROM unnest(p_queues) AS queue) AS named;
    END IF;
END $$;
