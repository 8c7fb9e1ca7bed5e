-- What people do to jobs: cancel, replay, drop, watch.

-- A job as it is shown. error: the last failure.
CREATE VIEW shown AS
SELECT j.id, j.task, j.queue, j.priority, j.state, j.key, j.lane, j.seq, j.attempts, j.max_attempts, j.crashes,
    j.lost_runs, j.snoozes, j.suspect, j.cancel_requested, j.replays, j.created_at, j.due_at, j.ready_at, j.claimed_at, j.started_at,
    j.ended_at, j.expires_at, j.member, j.fence, j.settled_fence, j.timeout, j.retry, j.codec, j.waits_for, j.on_dead,
    j.schedule, j.unique_key, CASE WHEN j.state <= 2 THEN j.reason END AS reason, j.failures, j.progress, j.headers,
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
            IF NOT j.cancel_requested THEN
                UPDATE job SET cancel_requested = true WHERE id = j.id;
                signals := signals || ARRAY(SELECT 'stop:' || encode(member, 'hex') FROM claimant WHERE id = j.claimant);
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
    signals := signals || (SELECT t.signals FROM update_dependents_v1(1000, v_now) AS t);
END $$;

-- What is scheduled is due now. Answers: 0 ready, 1 blocked, 2 running, 3 finished, 4 unknown.
CREATE FUNCTION run_now_v1(p_ids bytea[], p_by text, p_now bigint, OUT answers integer[], OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    j job;
    v_now bigint;
    v_changed bytea[] := '{}';
BEGIN
    answers := '{}';
    signals := '{}';
    PERFORM lock_jobs_v1(p_ids, 1, 1);
    v_now := coalesce(p_now, instant_v1());
    FOR n IN 1 .. cardinality(p_ids) LOOP
        SELECT * INTO j FROM job WHERE id = p_ids[n] AND form < 2;
        IF j.state = 1 THEN  -- it may have become due since
            SELECT * INTO j FROM job WHERE id = p_ids[n] FOR NO KEY UPDATE;
        END IF;
        IF j.state = 1 THEN
            j.due_at := NULL;
            signals := signals || to_ready_v1(j, false, v_now);
            v_changed := v_changed || j.id;
        END IF;
        answers := answers || CASE
            WHEN j.id IS NULL THEN 4 WHEN j.state IN (1, 2) THEN 0 WHEN j.state = 0 THEN 1 WHEN j.state = 3 THEN 2 ELSE 3 END;
    END LOOP;
    PERFORM audit_jobs_v1(p_by, 'run now', v_changed, v_now);
END $$;

-- Answers: 0 replayed, 1 live, 2 no body, 3 unknown, 4 not unique. Locks only finished rows, which no claim reads.
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
        ELSIF NOT take_key_v1(j) THEN
            answers := answers || 4;
        ELSE
            answers := answers || 0;
            v_changed := v_changed || j.id;
            IF j.state = 4 THEN
                DELETE FROM checkpoint WHERE job = j.id;
            END IF;
            j.attempts := 0;
            j.crashes := 0;
            j.lost_runs := 0;
            j.snoozes := 0;
            j.cancel_requested := false;
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
    signals := (SELECT t.signals FROM update_dependents_v1(1000, v_now) AS t);
END $$;

-- Request a signal when jobs end; answers the jobs as they are now. The lock closes the gap to a settle that is under way:
-- the settle either sees the watch or is seen here. If the lock cannot be had soon, the waiter's own polls find the end.
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
