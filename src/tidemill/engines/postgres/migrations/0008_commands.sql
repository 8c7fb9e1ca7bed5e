-- oldest code: 1
-- What people do to jobs and queues, and time and retention.

-- A job as it is shown. error: the last failure.
CREATE VIEW shown AS
SELECT j.id, j.task, j.queue, j.priority, j.state, j.key, j.lane, j.seq, j.attempts, j.max_attempts, j.crashes,
    j.losses, j.suspect, j.cancel_asked, j.replays, j.created_at, j.due_at, j.ready_at, j.claimed_at, j.started_at,
    j.ended_at, j.expires_at, j.member, j.fence, j.settled_fence, j.timeout, j.retry, j.codec, j.waits_for, j.on_dead,
    j.schedule, j.failures, j.progress, j.headers,
    (SELECT json_build_array(f.attempt, f.number, f.member, f.claimed_at, f.started_at, f.ended_at, f.retry_in,
                             convert_from(f.said, 'UTF8')::json)::text
     FROM failure AS f WHERE f.job = j.id AND f.number = j.failures) AS error,
    j.form, j.born, j.body, j.result, j.token
FROM job AS j;

-- Answers: 0 cancelled, 1 asked, 2 finished, 3 unknown. A claim in flight is waited for.
CREATE FUNCTION cancel_v1(p_ids bytea[], p_by text, p_now bigint, OUT answers integer[], OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    j job;
    v_now bigint;
    v_changed bytea[] := '{}';
BEGIN
    answers := '{}';
    signals := '{}';
    PERFORM lock_jobs_v1(p_ids, 0, 3);
    v_now := coalesce(p_now, instant_v1());
    FOR n IN 1 .. cardinality(p_ids) LOOP
        SELECT * INTO j FROM job WHERE id = p_ids[n] FOR NO KEY UPDATE;  -- it may have been replayed since
        IF NOT FOUND THEN
            answers := answers || 3;
        ELSIF j.state = 3 THEN
            answers := answers || 1;
            IF NOT j.cancel_asked THEN
                UPDATE job SET cancel_asked = true WHERE id = j.id;
                signals := signals || ARRAY(SELECT 'asked:' || encode(member, 'hex') FROM claimant WHERE id = j.claimant);
                v_changed := v_changed || j.id;
            END IF;
        ELSIF j.state < 3 THEN
            answers := answers || 0;
            signals := signals || to_final_v1(j, 6, v_now);
            v_changed := v_changed || j.id;
        ELSE
            answers := answers || CASE WHEN j.state = 6 THEN 0 ELSE 2 END;
        END IF;
    END LOOP;
    PERFORM audit_jobs_v1(p_by, 'cancel', v_changed, v_now);
    signals := signals || (SELECT t.signals FROM tell_v1(1000, v_now) AS t);
END $$;

-- Answers: 0 replayed, 1 live, 2 no body, 3 unknown. Locks only finished rows, which no claim looks at.
-- p_body: other arguments, with their codec and key; NULL: as they are.
CREATE FUNCTION replay_v1(p_ids bytea[], p_token bytea, p_body bytea, p_codec integer, p_key text, p_by text,
                          p_now bigint, OUT answers integer[], OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    j job;
    v_now bigint;
    v_changed bytea[] := '{}';
BEGIN
    answers := '{}';
    signals := '{}';
    PERFORM lock_jobs_v1(p_ids, 4, 6);
    v_now := coalesce(p_now, instant_v1());
    FOR n IN 1 .. cardinality(p_ids) LOOP
        SELECT * INTO j FROM job WHERE id = p_ids[n] AND form < 2;
        IF j.state >= 4 THEN  -- it may have ended since
            SELECT * INTO j FROM job WHERE id = p_ids[n] AND form < 2 FOR NO KEY UPDATE;
        END IF;
        IF NOT FOUND THEN
            answers := answers || 3;
        ELSIF j.replay_token = p_token THEN
            answers := answers || 0;
        ELSIF j.state < 4 THEN
            answers := answers || 1;
        ELSIF j.form > 0 THEN
            answers := answers || 2;
        ELSE
            answers := answers || 0;
            v_changed := v_changed || j.id;
            IF j.state = 4 THEN
                DELETE FROM checkpoint WHERE job = j.id;
            END IF;
            j.attempts := 0;
            j.crashes := 0;
            j.losses := 0;
            j.cancel_asked := false;
            j.replays := j.replays + 1;
            j.replay_token := p_token;
            j.result := NULL;
            j.progress := NULL;
            j.ended_at := NULL;
            j.due_at := NULL;
            j.expires_at := NULL;
            IF p_body IS NOT NULL THEN
                j.key := p_key;
                UPDATE job SET body = p_body, codec = p_codec, key = p_key WHERE id = j.id;
            END IF;
            signals := signals || to_ready_v1(j, false, v_now);
        END IF;
    END LOOP;
    PERFORM audit_jobs_v1(p_by, CASE WHEN p_body IS NULL THEN 'replay' ELSE 'edit' END, v_changed, v_now);
END $$;

-- Answers: 0 dropped, 1 live, 2 unknown.
CREATE FUNCTION drop_v1(p_ids bytea[], p_by text, p_now bigint, OUT answers integer[], OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    j job;
    v_now bigint;
    v_changed bytea[] := '{}';
BEGIN
    answers := '{}';
    PERFORM lock_jobs_v1(p_ids, 4, 6);
    v_now := coalesce(p_now, instant_v1());
    FOR n IN 1 .. cardinality(p_ids) LOOP
        SELECT * INTO j FROM job WHERE id = p_ids[n] AND form < 2;
        IF NOT FOUND OR j.id = ANY (v_changed) THEN
            answers := answers || 2;
        ELSIF j.state < 4 THEN
            answers := answers || 1;
        ELSE
            answers := answers || 0;
            v_changed := v_changed || j.id;
        END IF;
    END LOOP;
    PERFORM delete_v1(v_changed);
    PERFORM audit_jobs_v1(p_by, 'drop', v_changed, v_now);
    signals := (SELECT t.signals FROM tell_v1(1000, v_now) AS t);
END $$;

-- The lock closes the gap to a settle on its way, which either sees the watch or is seen here. If it cannot be had
-- soon, the waiter's own look has to do.
CREATE FUNCTION watch_v1(p_ids bytea[], p_waiter text, p_ttl bigint, p_now bigint) RETURNS SETOF shown
LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint := coalesce(p_now, instant_v1());
    v_timeout text := current_setting('lock_timeout');
BEGIN
    INSERT INTO watch (job, waiter, until)
    SELECT j.id, p_waiter, v_now + p_ttl FROM (SELECT DISTINCT u.id FROM unnest(p_ids) AS u (id) ORDER BY u.id) AS u
    JOIN job AS j ON j.id = ANY (ARRAY[u.id]) WHERE j.state::integer < 4
    ON CONFLICT (job, waiter) DO UPDATE SET until = greatest(watch.until, excluded.until);
    BEGIN
        PERFORM set_config('lock_timeout', '100ms', true);
        PERFORM 1 FROM (SELECT DISTINCT u.id FROM unnest(p_ids) AS u (id) ORDER BY u.id) AS u
        JOIN job AS j ON j.id = ANY (ARRAY[u.id]) WHERE j.state::integer = 3 FOR SHARE OF j;
    EXCEPTION WHEN lock_not_available THEN
        NULL;
    END;
    PERFORM set_config('lock_timeout', v_timeout, true);
    RETURN QUERY SELECT * FROM shown WHERE id = ANY (p_ids);
END $$;

-- Announcements of users' transactions and appended counts come into their tables; one process at a time.
CREATE FUNCTION fold_v1() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(lock_v1('fold', '')) THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT 1 FROM queue_new) THEN
        WITH gone AS (
            DELETE FROM queue_new WHERE ctid = ANY (ARRAY(SELECT ctid FROM queue_new LIMIT 10000 FOR UPDATE SKIP LOCKED))
            RETURNING name, created_at
        )
        INSERT INTO queue (name, created_at) SELECT name, min(created_at) FROM gone GROUP BY name ORDER BY name
        ON CONFLICT DO NOTHING;
    END IF;
    IF EXISTS (SELECT 1 FROM finished_new) THEN
        WITH gone AS (
            DELETE FROM finished_new
            WHERE ctid = ANY (ARRAY(SELECT ctid FROM finished_new LIMIT 10000 FOR UPDATE SKIP LOCKED))
            RETURNING queue, minute, completed, failed, dead, cancelled
        )
        INSERT INTO finished (queue, minute, completed, failed, dead, cancelled)
        SELECT queue, minute, sum(completed), sum(failed), sum(dead), sum(cancelled) FROM gone
        GROUP BY queue, minute ORDER BY minute, queue
        ON CONFLICT (minute, queue) DO UPDATE SET completed = finished.completed + excluded.completed,
            failed = finished.failed + excluded.failed, dead = finished.dead + excluded.dead,
            cancelled = finished.cancelled + excluded.cancelled;
    END IF;
END $$;

-- All queues: expired jobs, children that were left over, due jobs: at most p_limit of each kind.
CREATE FUNCTION promote_v1(p_limit integer, p_now bigint, OUT moved integer, OUT ahead bigint, OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    q queue;
    v_now bigint := coalesce(p_now, instant_v1());
    v_expired integer := 0;
    v_stopped boolean := false;
    v_due integer := 0;
    v_told integer;
    v_count integer;
    v_next bigint;
    v_more text[];
BEGIN
    signals := '{}';
    PERFORM fold_v1();
    FOR q IN SELECT * FROM queue ORDER BY name LOOP
        EXIT WHEN v_expired >= p_limit OR v_stopped;
        CONTINUE WHEN NOT EXISTS (SELECT 1 FROM job WHERE queue = q.name AND expires_at <= v_now AND state <= 2);
        SELECT e.moved, e.signals, e.stopped INTO v_count, v_more, v_stopped
        FROM expire_v1(q.name, p_limit - v_expired, v_now) AS e;
        v_expired := v_expired + v_count;
        signals := signals || v_more;
    END LOOP;
    SELECT t.moved, t.signals INTO v_told, v_more FROM tell_v1(p_limit, v_now) AS t;
    signals := signals || v_more;
    FOR q IN SELECT * FROM queue ORDER BY name LOOP
        EXIT WHEN v_due >= p_limit;
        SELECT d.moved, d.signals INTO v_count, v_more FROM due_v1(q, p_limit - v_due, v_now) AS d;
        IF v_count > 0 THEN
            v_due := v_due + v_count;
            signals := signals || v_more || ('ready:' || q.name);
        END IF;
    END LOOP;
    moved := v_expired + v_told + v_due;
    IF v_stopped OR v_expired >= p_limit OR v_told >= p_limit OR v_due >= p_limit THEN
        ahead := 0;
    ELSE
        FOR q IN SELECT * FROM queue LOOP
            v_next := least(v_next, (SELECT due_at FROM job WHERE state = 1 AND queue = q.name ORDER BY due_at LIMIT 1));
        END LOOP;
        ahead := CASE WHEN v_next IS NOT NULL THEN greatest(0, v_next - v_now) END;
    END IF;
END $$;

-- The newest job of a state that is beyond the queue's bound by count: a walk over that many index entries.
CREATE FUNCTION beyond_v1(q queue, p_state integer) RETURNS bigint[] LANGUAGE sql STABLE AS $$
    SELECT ARRAY[j.ended_at, j.born] FROM job AS j
    WHERE j.queue = q.name AND j.state = p_state::smallint AND j.state >= 4 AND j.form < 2
    ORDER BY j.ended_at DESC, j.born DESC OFFSET q.keep_counts[p_state - 3] LIMIT 1
$$;

CREATE FUNCTION mark_v1(p_marks jsonb, p_queue text, p_state integer, p_mark bigint[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT p_marks || jsonb_build_object(
        p_queue, coalesce(p_marks -> p_queue, '{}') || jsonb_build_object(p_state, to_jsonb(p_mark)))
$$;

-- Retention, in steps that stay short: at most p_limit jobs, and from 500 on none further once p_budget
-- microseconds have gone by; then `more`.
--   p_anew   look again for what is beyond counts of more than 10,000, and begin at the oldest end
--   p_marks  otherwise the last answer: {queue: {state: [version, ended, born, from]}}: of that version of the queue
--            the newest job beyond its count, and the end of the last one deleted. Deleted rows leave index entries,
--            which stay while somebody holds the horizon back; the next call starts after them.
CREATE FUNCTION prune_v1(p_limit integer, p_budget bigint, p_anew boolean, p_marks jsonb, p_now bigint,
                         OUT pruned integer, OUT more boolean, OUT marks jsonb, OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    q queue;
    v_now bigint := coalesce(p_now, instant_v1());
    v_mark jsonb;
    v_known bigint[];     -- beyond a large count, as it was found: ended_at, born
    v_bound bigint[];     -- what is up to here goes
    v_from bigint;
    v_ids bytea[];
    v_starts integer;
    v_asked integer;
    v_deadline timestamptz;
BEGIN
    pruned := 0;
    more := p_limit <= 0;
    marks := CASE WHEN p_anew THEN '{}' ELSE p_marks END;
    IF p_anew THEN  -- the long walks: before the clock starts, and before anything is locked
        FOR q IN SELECT * FROM queue WHERE 10000 < ANY (keep_counts) ORDER BY name LOOP
            FOR v_state IN 4 .. 6 LOOP
                CONTINUE WHEN coalesce(q.keep_counts[v_state - 3], 0) <= 10000;
                v_bound := beyond_v1(q, v_state);
                CONTINUE WHEN v_bound IS NULL;
                marks := mark_v1(marks, q.name, v_state, q.version || v_bound || -1::bigint);
            END LOOP;
        END LOOP;
    END IF;
    v_deadline := clock_timestamp() + p_budget * interval '1 microsecond';
    PERFORM fold_v1();
    FOR q IN SELECT * FROM queue ORDER BY name LOOP
        FOR v_state IN 4 .. 6 LOOP
            EXIT WHEN more;
            v_mark := marks -> q.name -> v_state::text;
            v_known := '{-1,-1}';
            v_from := -1;
            IF (v_mark ->> 0)::bigint = q.version THEN
                v_known := ARRAY[v_mark ->> 1, v_mark ->> 2]::bigint[];
                v_from := (v_mark ->> 3)::bigint;
            END IF;
            v_bound := v_known;
            IF q.keep_counts[v_state - 3] <= 10000 THEN
                v_bound := coalesce(beyond_v1(q, v_state), v_bound);
            END IF;
            IF q.keep_ages[v_state - 3] IS NOT NULL THEN
                v_bound := greatest(v_bound, ARRAY[v_now - q.keep_ages[v_state - 3], 9223372036854775807]);
            END IF;
            WHILE NOT more AND v_from <= v_bound[1] LOOP
                v_asked := least(500, p_limit - pruned);
                SELECT coalesce(array_agg(s.id), '{}'), greatest(max(s.ended_at), v_from) INTO v_ids, v_from FROM (
                    SELECT id, ended_at FROM job
                    WHERE queue = q.name AND state = v_state AND state >= 4 AND form < 2
                      AND ended_at >= v_from AND (ended_at, born) <= (v_bound[1], v_bound[2])
                    ORDER BY ended_at, born LIMIT v_asked FOR UPDATE SKIP LOCKED
                ) AS s;
                PERFORM delete_v1(v_ids);
                pruned := pruned + cardinality(v_ids);
                more := pruned >= p_limit OR (pruned >= 500 AND clock_timestamp() >= v_deadline);
                EXIT WHEN cardinality(v_ids) < v_asked;
            END LOOP;
            IF v_from >= 0 OR v_known[1] >= 0 THEN
                marks := mark_v1(marks, q.name, v_state, q.version || v_known || v_from);
            END IF;
        END LOOP;
    END LOOP;
    v_from := coalesce((marks #>> '{"",0,0}')::bigint, -1);  -- no queue has this name: the tombstones
    WHILE NOT more LOOP
        v_asked := least(500, p_limit - pruned);
        SELECT coalesce(array_agg(s.id), '{}'), greatest(max(s.ended_at), v_from) INTO v_ids, v_from FROM (
            SELECT id, ended_at FROM job WHERE form = 2 AND ended_at >= v_from AND ended_at <= v_now - 3600000000
            ORDER BY ended_at LIMIT v_asked FOR UPDATE SKIP LOCKED
        ) AS s;
        PERFORM delete_v1(v_ids);
        pruned := pruned + cardinality(v_ids);
        more := pruned >= p_limit OR (pruned >= 500 AND clock_timestamp() >= v_deadline);
        marks := mark_v1(marks, '', 0, ARRAY[v_from]);
        EXIT WHEN cardinality(v_ids) < v_asked;
    END LOOP;
    -- bounded too; the condition stands twice because a row may have changed since it was chosen
    DELETE FROM watch
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM watch WHERE until <= v_now LIMIT 1000)) AND until <= v_now;
    -- a busy rate writes more than a thousand of these a minute: where some are left, the next call comes at once
    DELETE FROM start
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM start WHERE until <= v_now LIMIT 5000)) AND until <= v_now;
    GET DIAGNOSTICS v_starts = ROW_COUNT;
    more := more OR v_starts = 5000;
    DELETE FROM lease WHERE expires_at <= v_now;
    WITH gone AS (
        DELETE FROM claimant WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM claimant WHERE retired_at <= v_now - 3600000000 LIMIT 1000)) RETURNING id
    )
    SELECT coalesce(array_agg(id), '{}') INTO v_ids FROM gone;
    IF v_ids <> '{}' THEN
        DELETE FROM claimed WHERE claimant = ANY (v_ids);
    END IF;
    DELETE FROM finished WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM finished WHERE minute < v_now - 32 * 86400000000 LIMIT 1000));
    signals := (SELECT t.signals FROM tell_v1(1000, v_now) AS t);
END $$;

CREATE FUNCTION known_v1(p_name text) RETURNS queue LANGUAGE plpgsql AS $$
DECLARE
    q queue := queue_v1(p_name, instant_v1());
BEGIN
    IF q.name IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'PN003', MESSAGE = format('there is no queue %L; there are: %s', p_name,
            coalesce((SELECT string_agg(name, ', ') FROM (SELECT name FROM queue ORDER BY name LIMIT 10) AS known), 'none yet'));
    END IF;
    RETURN q;
END $$;

-- Replace a queue's options. p_flat: the columns that are worked out from them. Claims in flight are waited for,
-- so none counts by the old limit.
CREATE FUNCTION configure_v1(p_name text, p_options bytea, p_flat jsonb, p_by text, p_now bigint) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    q queue;
    v queue;
    v_now bigint;
    v_new boolean;
    v_limit jsonb;
    v_task text;
BEGIN
    PERFORM pg_advisory_xact_lock(lock_v1('queue', p_name));
    v_now := coalesce(p_now, instant_v1());
    q := queue_v1(p_name, v_now);
    v_new := q.name IS NULL;
    IF v_new THEN
        INSERT INTO queue (name, created_at) VALUES (p_name, v_now) ON CONFLICT DO NOTHING;
    END IF;
    SELECT * INTO q FROM queue WHERE name = p_name FOR UPDATE;
    IF q.options = p_options THEN
        IF v_new THEN
            PERFORM audit_v1(p_by, 'configure', p_name, '', v_now);
        END IF;
        RETURN '{}';
    END IF;
    v := jsonb_populate_record(q, p_flat);
    IF (q.keyed, q.key_limited, ARRAY(SELECT jsonb_object_keys(q.tasks) ORDER BY 1))
       IS DISTINCT FROM (v.keyed, v.key_limited, ARRAY(SELECT jsonb_object_keys(v.tasks) ORDER BY 1)) THEN
        v.stale := '[]';
        v.reshaped := '18446744073709551615';  -- the next claim dates it: see claim_v1
        DELETE FROM lane WHERE queue = p_name;
    END IF;
    UPDATE queue SET options = p_options, version = version + 1, keyed = v.keyed, shaped = v.shaped,
        limited = v.limited, key_limited = v.key_limited, concurrency = v.concurrency, rate_count = v.rate_count,
        rate_window = v.rate_window, key_concurrency = v.key_concurrency, key_rate_count = v.key_rate_count,
        key_rate_window = v.key_rate_window, tasks = v.tasks, weights = v.weights, keep_body = v.keep_body,
        keep_ages = v.keep_ages, keep_counts = v.keep_counts, keeps_all = v.keeps_all, stale = v.stale,
        reshaped = v.reshaped
    WHERE name = p_name;
    PERFORM redate_v1(p_name, 'queue', '', q.rate_window, v.rate_window);
    PERFORM redate_v1(p_name, 'key', NULL, q.key_rate_window, v.key_rate_window);
    FOR v_task, v_limit IN SELECT * FROM jsonb_each(q.tasks) LOOP
        PERFORM redate_v1(p_name, 'task', v_task, (v_limit ->> 2)::bigint, (v.tasks -> v_task ->> 2)::bigint);
    END LOOP;
    IF q.limited OR v.limited THEN  -- the next claim measures every gate anew
        DELETE FROM parked WHERE queue = p_name;
        UPDATE lane SET parked = false WHERE queue = p_name AND parked;
        IF v.limited THEN  -- jobs that ran before there was a limit count from now on
            UPDATE job SET gated = true WHERE token IS NOT NULL AND queue = p_name AND NOT gated;
        END IF;
    END IF;
    PERFORM audit_v1(p_by, 'configure', p_name, convert_from(p_options, 'UTF8'), v_now);
    RETURN ARRAY['ready:' || p_name];
END $$;

-- A rate has another window now: what its log holds counts by the new one. An entry stands for starts up to
-- the end of its step. A NULL name: every key.
CREATE FUNCTION redate_v1(p_queue text, p_kind text, p_name text, p_before bigint, p_after bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF p_before <> p_after THEN
        WITH gone AS (
            DELETE FROM start WHERE queue = p_queue AND kind = p_kind AND (p_name IS NULL OR name = p_name)
            RETURNING name, step, count
        )
        INSERT INTO start (queue, kind, name, step, count, until)
        SELECT p_queue, p_kind, name, step + greatest(1, p_before / 1000) - greatest(1, p_after / 1000), count,
            step + greatest(1, p_before / 1000) + p_after
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
    PERFORM known_v1(p_name);
    UPDATE queue SET paused_at = v_now, paused_by = p_by, paused_why = p_why, version = version + 1
    WHERE name = p_name AND paused_at IS NULL;
    IF FOUND THEN
        PERFORM audit_v1(p_by, 'pause', p_name, p_why, v_now);
    END IF;
END $$;

CREATE FUNCTION resume_v1(p_name text, p_by text, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(lock_v1('queue', p_name));
    PERFORM known_v1(p_name);
    UPDATE queue SET paused_at = NULL, paused_by = '', paused_why = '', version = version + 1
    WHERE name = p_name AND paused_at IS NOT NULL;
    IF NOT FOUND THEN
        RETURN '{}';
    END IF;
    PERFORM audit_v1(p_by, 'resume', p_name, '', coalesce(p_now, instant_v1()));
    RETURN ARRAY['ready:' || p_name];
END $$;
