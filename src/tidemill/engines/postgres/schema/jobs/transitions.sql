-- How a single job changes its state, except on the hot paths of enqueue, claim and completion, which do it for many at
-- once. These functions are called by the steps of later files, never from outside.
--
-- Each takes the job's row as it is now, already locked. The caller may have changed columns that count (attempts,
-- crashes, lost_runs, failures, suspect, settled_fence, started_at, ...): they are written together with the move. A
-- function that returns text[] returns the signals to publish after the commit: 'topic' or 'topic<newline>text'.

-- The group of a job in its queue: model.lane.group_of.
CREATE FUNCTION group_of_v1(p_keyed boolean, p_tasks jsonb, p_task text, p_key text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_tasks ? p_task THEN p_task || chr(31) ELSE '' END || CASE WHEN p_keyed THEN p_key ELSE '' END
$$;

-- Whether a queue keeps nothing but a tombstone of jobs that end in this state.
CREATE FUNCTION keeps_nothing_v1(q queue, p_state integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(q.keep_counts[p_state - 3] = 0, false)
$$;

-- A running job of a queue with limits stops running. If some gate counts what runs, a row in `freed` says so: the next claim
-- opens the gates that were parked for it.
CREATE FUNCTION left_running_v1(j job, q queue) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    IF NOT j.gated THEN
        RETURN '{}';
    END IF;
    IF q.counts_runs THEN
        INSERT INTO freed (queue, task, key) VALUES (j.queue, CASE WHEN q.tasks ? j.task THEN j.task ELSE '' END,
                                                     CASE WHEN q.key_limited THEN j.key ELSE '' END);
    END IF;
    RETURN ARRAY['ready:' || j.queue];
END $$;

-- A job becomes ready. p_keep_seq: it keeps its position in its lane. Claims may have passed that, so it is marked `back`.
-- p_reason: why its run was released.
CREATE FUNCTION to_ready_v1(j job, p_keep_seq boolean, p_now bigint, p_reason text DEFAULT NULL) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    q queue;
    v_lane text;
    v_seq bigint;
    v_named text[] := named_v1(j, 2);
BEGIN
    PERFORM pg_current_xact_id();  -- before the queue is read: see `reshaped` in claim_v1
    SELECT * INTO q FROM queue WHERE name = j.queue;
    v_lane := coalesce(group_of_v1(q.keyed, q.tasks, j.task, j.key), '');
    j.aside := p_reason IS NOT DISTINCT FROM 'unknown task';
    UPDATE job SET state = 2, lane = CASE WHEN j.aside THEN aside_lane_v1(j.task, v_lane) ELSE v_lane END, aside = j.aside, seq = CASE WHEN p_keep_seq THEN job.seq ELSE nextval('seq') END,
        back = p_keep_seq AND NOT j.aside, xid = pg_current_xact_id(), ready_at = p_now, ended_at = j.ended_at,
        started_at = CASE WHEN j.state = 1 THEN j.started_at END,  -- run now: the last run stays visible, as at its due time
        due_at = j.due_at, expires_at = j.expires_at, token = NULL, gated = false, suspect = j.suspect,
        attempts = j.attempts, crashes = j.crashes, lost_runs = j.lost_runs, failures = j.failures, replays = j.replays,
        snoozes = j.snoozes, replay_token = j.replay_token, cancel_requested = j.cancel_requested, settled_fence = j.settled_fence,
        waits_for = 0, result = j.result, progress = j.progress, reason = p_reason
    WHERE id = j.id RETURNING seq INTO v_seq;
    IF q.laned AND NOT j.aside THEN
        INSERT INTO lane_new (queue, priority, suspect, lane, task, key, first)
        VALUES (j.queue, j.priority, j.suspect, v_lane, CASE WHEN q.tasks ? j.task THEN j.task ELSE '' END,
                CASE WHEN q.keyed THEN j.key ELSE '' END, CASE WHEN p_keep_seq THEN 9223372036854775807 ELSE v_seq END);
    END IF;
    IF j.state = 3 THEN
        PERFORM left_running_v1(j, q);
        IF j.unique_until = 1 THEN
            PERFORM take_key_again_v1(j);
        END IF;
    ELSIF j.state = 5 THEN
        DELETE FROM dead WHERE job = j.id;
    END IF;
    RETURN v_named || ('ready:' || j.queue);
END $$;

-- A job waits for its due time.
CREATE FUNCTION to_scheduled_v1(j job, p_due_at bigint, p_reason text DEFAULT NULL) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    q queue;
    v_named text[] := named_v1(j, 1);
BEGIN
    UPDATE job SET state = 1, due_at = p_due_at, back = false, token = NULL, gated = false, attempts = j.attempts,
        failures = j.failures, settled_fence = j.settled_fence, started_at = j.started_at, waits_for = 0, reason = p_reason,
        snoozes = j.snoozes
    WHERE id = j.id;
    IF j.state = 3 AND j.unique_until = 1 THEN
        PERFORM take_key_again_v1(j);
    END IF;
    IF j.state = 3 AND j.gated THEN
        SELECT * INTO q FROM queue WHERE name = j.queue;
        PERFORM left_running_v1(j, q);
    END IF;
    RETURN v_named || ('ready:' || j.queue);  -- so that timers are set
END $$;

-- Count what ended, in its minute: an insert that never waits, folded later.
CREATE FUNCTION count_finished_v1(
    p_queue text, p_completed integer, p_failed integer, p_dead integer, p_cancelled integer, p_now bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO finished_new (queue, minute, completed, failed, dead, cancelled)
    VALUES (p_queue, p_now - p_now % 60000000, p_completed, p_failed, p_dead, p_cancelled);
END $$;

-- The signals for those who wait for these jobs.
CREATE FUNCTION notify_waiters_v1(p_ids bytea[], p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_signals text[] := '{}';
BEGIN
    IF EXISTS (SELECT 1 FROM watch) THEN
        WITH gone AS (DELETE FROM watch WHERE job = ANY (p_ids) RETURNING job, waiter, until)
        SELECT array_agg('ended:' || waiter || chr(10) || encode(job, 'hex')) INTO v_signals
        FROM gone WHERE until > p_now;
    END IF;
    RETURN coalesce(v_signals, '{}');
END $$;

-- Delete what belongs to jobs.
CREATE FUNCTION forget_parts_v1(p_ids bytea[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM failure WHERE job = ANY (p_ids);
    DELETE FROM log WHERE job = ANY (p_ids);
    DELETE FROM checkpoint WHERE job = ANY (p_ids);
END $$;

-- Leave tombstones: id, task, queue, state, fences and end stay for an hour.
CREATE FUNCTION bury_v1(p_ids bytea[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE job SET form = 2, body = NULL, result = NULL, headers = NULL, progress = NULL, failures = 0
    WHERE id = ANY (p_ids);
    PERFORM forget_parts_v1(p_ids);
END $$;

-- A job ended as dead or cancelled.
CREATE FUNCTION to_final_v1(j job, p_state integer, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    q queue;
    v_signals text[] := named_v1(j, p_state);
BEGIN
    SELECT * INTO q FROM queue WHERE name = j.queue;
    IF p_state = 5 AND j.on_dead IS NOT NULL THEN
        v_signals := v_signals || leave_handler_v1(j, p_now);
    END IF;
    UPDATE job SET state = p_state, ended_at = p_now, expires_at = NULL, token = NULL, back = false, aside = false, gated = false,
        waits_for = 0, suspect = j.suspect, attempts = j.attempts, crashes = j.crashes, lost_runs = j.lost_runs,
        failures = j.failures, settled_fence = j.settled_fence, started_at = j.started_at
    WHERE id = j.id;
    IF j.unique_until <= 1 THEN
        PERFORM free_key_v1(j);
    END IF;
    IF j.state = 0 THEN
        DELETE FROM wait WHERE child = j.id;
    ELSIF j.state = 3 THEN
        v_signals := v_signals || left_running_v1(j, q);
    END IF;
    PERFORM count_finished_v1(j.queue, 0, 0, (p_state = 5)::integer, (p_state = 6)::integer, p_now);
    v_signals := v_signals || notify_waiters_v1(ARRAY[j.id], p_now);
    IF j.has_children THEN
        INSERT INTO ended_parent (parent, state) VALUES (j.id, p_state);
    END IF;
    IF keeps_nothing_v1(q, p_state) THEN
        PERFORM bury_v1(ARRAY[j.id]);
    ELSIF p_state = 5 THEN
        INSERT INTO dead (job, queue, task, fingerprint, ended_at, born)
        SELECT j.id, j.queue, j.task, coalesce((
            -- not by `->>`, which refuses a message with \u0000
            SELECT substring(convert_from(f.said, 'UTF8') FROM '"fingerprint" ?: ?"([0-9a-z]+)"') FROM failure AS f
            WHERE f.job = j.id AND f.number = j.failures
        ), 'unknown'), p_now, j.born;
    END IF;
    RETURN v_signals;
END $$;

-- Delete finished jobs, with everything kept about them.
CREATE FUNCTION delete_v1(p_ids bytea[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM forget_parts_v1(p_ids);
    DELETE FROM dead WHERE job = ANY (p_ids);
    DELETE FROM watch WHERE job = ANY (p_ids);
    DELETE FROM replacing WHERE job = ANY (p_ids);
    INSERT INTO ended_parent (parent, state) SELECT id, -1 FROM job WHERE id = ANY (p_ids) AND has_children;
    DELETE FROM job WHERE id = ANY (p_ids);
END $$;
