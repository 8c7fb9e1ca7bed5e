-- oldest code: 1
-- How single jobs move, other than by the hot paths of enqueue, claim and completion. Functions here
-- are called by the steps of the later files, never from outside. Where one returns text[], these are
-- the signals to be published after the commit: 'topic' or 'topic<newline>text'.
--
-- A function takes the row as it is now, already locked; the caller may have changed the columns that
-- count (attempts, crashes, losses, failures, suspect, settled_fence, started_at, ...), which are
-- written along with the move.

-- Advisory locks, in the order in which a step takes them: sweep, member, claimant, queue, due, fence.
CREATE FUNCTION lock_v1(p_kind text, p_name text) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT hashtextextended(p_kind || ' ' || p_name, 'job'::regclass::oid::bigint)
$$;

CREATE FUNCTION instant_v1() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- A draw that lies more than a second behind the clock is thrown away and the sequence set to the clock,
-- so that fences do not repeat after a restore. It is set only while it lags, so it never goes back.
CREATE FUNCTION fences_v1(p_count integer) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    v_clock bigint := instant_v1();
BEGIN
    IF nextval('fence') < v_clock - 1000000 THEN
        PERFORM pg_advisory_xact_lock(lock_v1('fence', ''));  -- once a second; nothing is waited for after it
        IF (SELECT last_value FROM fence) < v_clock - 1000000 THEN
            PERFORM setval('fence', v_clock);
        END IF;
    END IF;
    RETURN ARRAY(SELECT nextval('fence') FROM generate_series(1, p_count));
END $$;

-- While somebody listens to events, a call names the jobs that it moves (`Moves` of the protocol) among its signals:
-- '!' and the state, then id, queue, task and reason, each after a newline; a '!' alone is one more than are named. The
-- setting says how many may still be named; it is of this transaction, and without it nobody listens. A caller asks
-- by passing its `now` through here.
CREATE FUNCTION naming_v1(p_now bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('tidemill.naming', '2000', true);
    RETURN p_now;
END $$;

-- A job is about to come into a state; j has what is to be written with that. A failure that is not counted in its row
-- yet was recorded in this step. (json cannot show a NUL.)
CREATE FUNCTION named_v1(j job, p_state integer) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_room text := current_setting('tidemill.naming', true);
    v_said text;
BEGIN
    IF coalesce(v_room, '') = '' THEN
        RETURN '{}';
    ELSIF v_room = '0' THEN
        RETURN '{!}';
    END IF;
    PERFORM set_config('tidemill.naming', (v_room::integer - 1)::text, true);
    IF j.failures > (SELECT failures FROM job WHERE id = j.id) THEN
        SELECT convert_from(said, 'UTF8') INTO v_said FROM failure WHERE job = j.id AND number = j.failures;
    END IF;
    RETURN ARRAY[concat_ws(chr(10), '!' || p_state, encode(j.id, 'hex'), j.queue, j.task,
        CASE WHEN v_said IS NULL OR v_said LIKE '%u0000%' THEN '' ELSE left(
            coalesce(nullif(v_said::json ->> 'error', ''), v_said::json ->> 'kind', 'error') || ': '
            || coalesce(v_said::json ->> 'message', ''), 300) END)];
END $$;

-- The same of several, which have just come into the state that is stored.
CREATE FUNCTION named_all_v1(p_ids bytea[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_room text := current_setting('tidemill.naming', true);
    v_count integer := coalesce(cardinality(p_ids), 0);
BEGIN
    IF coalesce(v_room, '') = '' OR v_count = 0 THEN
        RETURN '{}';
    END IF;
    PERFORM set_config('tidemill.naming', greatest(0, v_room::integer - v_count)::text, true);
    RETURN ARRAY(
        SELECT concat_ws(chr(10), '!' || j.state, encode(j.id, 'hex'), j.queue, j.task, '')
        FROM unnest(p_ids[:v_room::integer]) WITH ORDINALITY AS u (id, place) JOIN job AS j ON j.id = ANY (ARRAY[u.id])
        ORDER BY u.place
    ) || array_fill('!'::text, ARRAY[greatest(0, v_count - v_room::integer)]);
END $$;

-- Lock jobs named by the caller, in the order of their ids, if they are in these states. The cast keeps the
-- planner from the partial indexes of a state, which it would walk whole: here and wherever a row is known by
-- its id or its place, `state::integer` is compared.
--
-- `= ANY (ARRAY[...])`, here and wherever jobs are joined by their ids: with a plain `=` the index of ids is in an order
-- that a merge join could use, so the planner considers to walk all of it, and to compare every job with every name. For a
-- table that has one row that is the cheapest way, and the plan is kept when there are 20,000: 0.9 s to settle 100.
CREATE FUNCTION lock_jobs_v1(p_ids bytea[], p_lowest integer, p_highest integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM (SELECT DISTINCT u.id FROM unnest(p_ids) AS u (id) ORDER BY u.id) AS named
    JOIN job AS j ON j.id = ANY (ARRAY[named.id])
    WHERE j.state::integer BETWEEN p_lowest AND p_highest
    FOR NO KEY UPDATE OF j;
END $$;

-- model.lane.group_of
CREATE FUNCTION group_of_v1(p_keyed boolean, p_tasks jsonb, p_task text, p_key text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p_tasks ? p_task THEN p_task || chr(31) ELSE '' END || CASE WHEN p_keyed THEN p_key ELSE '' END
$$;

-- What a queue's keep_* says of a final state: nothing stays but a tombstone.
CREATE FUNCTION keeps_nothing_v1(q queue, p_state integer) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(q.keep_counts[p_state - 3] = 0, false)
$$;

CREATE FUNCTION said_v1(p_kind text, p_message text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT convert_to(json_build_object('kind', p_kind, 'message', p_message)::text, 'UTF8')
$$;

CREATE FUNCTION append_failure_v1(INOUT j job, p_said bytea, p_attempt integer, p_retry_in bigint, p_now bigint)
LANGUAGE plpgsql AS $$
BEGIN
    j.failures := j.failures + 1;
    INSERT INTO failure (job, number, attempt, claimed_at, started_at, ended_at, retry_in, member, said)
    VALUES (j.id, j.failures, p_attempt, j.claimed_at, j.started_at, p_now, p_retry_in, j.member, p_said);
    IF j.failures > 25 THEN
        DELETE FROM failure WHERE job = j.id AND number = j.failures - 20;
    END IF;
END $$;

-- A running job of a gated queue goes: a key's gate is told by a line that the next claim folds before it
-- counts; the others are counted anew by each claim.
CREATE FUNCTION left_running_v1(j job, q queue) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    IF NOT j.gated THEN
        RETURN '{}';
    END IF;
    IF q.key_limited THEN
        INSERT INTO freed (queue, key) VALUES (j.queue, j.key);
    END IF;
    RETURN ARRAY['ready:' || j.queue];
END $$;

CREATE FUNCTION to_ready_v1(j job, p_keep_seq boolean, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    q queue;
    v_lane text;
    v_named text[] := named_v1(j, 2);
BEGIN
    PERFORM pg_current_xact_id();  -- before the queue is read: see `reshaped` in claim_v1
    SELECT * INTO q FROM queue WHERE name = j.queue;
    v_lane := coalesce(group_of_v1(q.keyed, q.tasks, j.task, j.key), '');
    UPDATE job SET state = 2, lane = v_lane, seq = CASE WHEN p_keep_seq THEN job.seq ELSE nextval('seq') END,
        back = p_keep_seq, xid = pg_current_xact_id(), ready_at = p_now, started_at = NULL, ended_at = j.ended_at,
        due_at = j.due_at, expires_at = j.expires_at, token = NULL, gated = false, suspect = j.suspect,
        attempts = j.attempts, crashes = j.crashes, losses = j.losses, failures = j.failures, replays = j.replays,
        replay_token = j.replay_token, cancel_asked = j.cancel_asked, settled_fence = j.settled_fence,
        waits_for = 0, result = j.result, progress = j.progress
    WHERE id = j.id;
    IF v_lane <> '' THEN
        INSERT INTO lane_new (queue, priority, suspect, lane, task, key)
        VALUES (j.queue, j.priority, j.suspect, v_lane, CASE WHEN q.tasks ? j.task THEN j.task ELSE '' END,
                CASE WHEN q.keyed THEN j.key ELSE '' END);
    END IF;
    IF j.state = 3 THEN
        PERFORM left_running_v1(j, q);
    END IF;
    RETURN v_named || ('ready:' || j.queue);
END $$;

CREATE FUNCTION to_scheduled_v1(j job, p_due_at bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    q queue;
    v_named text[] := named_v1(j, 1);
BEGIN
    UPDATE job SET state = 1, due_at = p_due_at, back = false, token = NULL, gated = false, attempts = j.attempts,
        failures = j.failures, settled_fence = j.settled_fence, started_at = j.started_at, waits_for = 0
    WHERE id = j.id;
    IF j.state = 3 AND j.gated THEN
        SELECT * INTO q FROM queue WHERE name = j.queue;
        PERFORM left_running_v1(j, q);
    END IF;
    RETURN v_named || ('ready:' || j.queue);  -- so that timers are set
END $$;

CREATE FUNCTION count_finished_v1(
    p_queue text, p_completed integer, p_failed integer, p_dead integer, p_cancelled integer, p_now bigint
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO finished_new (queue, minute, completed, failed, dead, cancelled)
    VALUES (p_queue, p_now - p_now % 60000000, p_completed, p_failed, p_dead, p_cancelled)
$$;

-- Who waits for these jobs is told.
CREATE FUNCTION tell_waiters_v1(p_ids bytea[], p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
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

CREATE FUNCTION forget_parts_v1(p_ids bytea[]) RETURNS void LANGUAGE sql AS $$
    DELETE FROM failure WHERE job = ANY (p_ids);
    DELETE FROM log WHERE job = ANY (p_ids);
    DELETE FROM checkpoint WHERE job = ANY (p_ids);
$$;

-- Leave tombstones: id, task, queue, state, fences and end stay for an hour.
CREATE FUNCTION bury_v1(p_ids bytea[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE job SET form = 2, body = NULL, result = NULL, headers = NULL, progress = NULL, failures = 0
    WHERE id = ANY (p_ids);
    PERFORM forget_parts_v1(p_ids);
END $$;

-- The body of a job as a JSON string; null where it is no text, or encrypted.
CREATE FUNCTION body_text_v1(j job) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE WHEN j.codec = 1 THEN to_json(convert_from(j.body, 'UTF8'))::text ELSE 'null' END;
EXCEPTION WHEN character_not_in_repertoire THEN
    RETURN 'null';
END $$;

-- What the catalogue says of a task. What cannot be read, as a later release may publish it, must not be in the way of a
-- death.
CREATE FUNCTION entry_v1(p_name text, OUT queue text, OUT priority smallint, OUT timeout bigint, OUT attempts integer)
LANGUAGE plpgsql AS $$
DECLARE
    v_entry jsonb;
BEGIN
    v_entry := (SELECT convert_from(t.entry, 'UTF8')::jsonb FROM task AS t WHERE t.name = p_name);
    priority := (v_entry ->> 'priority')::smallint;
    timeout := (v_entry ->> 'timeout')::bigint;
    attempts := (v_entry #>> '{retry,attempts}')::integer;
    IF jsonb_typeof(v_entry -> 'queue') = 'string' AND priority BETWEEN 0 AND 10 THEN
        queue := v_entry ->> 'queue';
    ELSE
        priority := NULL;
    END IF;
EXCEPTION WHEN data_exception THEN
    priority := NULL;
    timeout := NULL;
END $$;

-- model.ids.handler_id
CREATE FUNCTION handler_id_v1(p_dead bytea, p_number integer) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_mixed integer := (((get_byte(p_dead, 6) << 8) | get_byte(p_dead, 7)) # p_number) & 4095;
    v_id bytea := set_byte(set_byte(p_dead, 6, 128 | (v_mixed >> 8)), 7, v_mixed & 255);
BEGIN
    RETURN set_byte(set_byte(v_id, 14, get_byte(v_id, 14) # ((p_number >> 12) & 255)), 15, 255 - get_byte(v_id, 15));
END $$;

-- model.death.handler_job: a job that is about to die leaves a job of its handler. j has what is to be written; its
-- last failure is stored.
CREATE FUNCTION leave_handler_v1(j job, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    e record;
    v_queue text;
    v_number integer := j.replays;
    v_said text := (SELECT convert_from(said, 'UTF8') FROM failure WHERE job = j.id AND number = j.failures);
    v_body text;
    v_stored bytea[];
BEGIN
    SELECT * INTO e FROM entry_v1(j.on_dead);
    v_queue := coalesce(e.queue, j.queue);
    v_body := format('[[{"id":"%s","task":%s,"queue":%s,"key":%s,"attempts":%s,"crashes":%s,"replays":%s,"failure":%s,'
                     || '"body":%s}],{}]', show_id_v1(j.id), to_json(j.task), to_json(j.queue),
        CASE WHEN j.key = '' THEN 'null' ELSE to_json(j.key)::text END, j.attempts, j.crashes, j.replays, v_said,
        body_text_v1(j));
    LOOP
        v_stored := store_v1(
            ARRAY[handler_id_v1(j.id, v_number)], ARRAY[j.on_dead], ARRAY[v_queue],
            ARRAY[coalesce(e.priority, 5::smallint)], ARRAY[convert_to(v_body, 'UTF8')],
            ARRAY[1::smallint], ARRAY[NULL::bytea], ARRAY[j.key], ARRAY[0::bigint], ARRAY[NULL::bigint],
            ARRAY[NULL::bigint], ARRAY[e.timeout], ARRAY[NULL::bytea],
            ARRAY[coalesce(e.attempts, 5)], ARRAY[NULL::text], ARRAY[NULL::text], p_now);
        EXIT WHEN v_stored <> '{}';
        v_number := v_number + 1;  -- that id is taken: the dead job's own was used before
    END LOOP;
    RETURN named_all_v1(v_stored) || ('ready:' || v_queue);
END $$;

-- It ended, otherwise than by completing.
CREATE FUNCTION to_final_v1(j job, p_state integer, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    q queue;
    v_signals text[] := named_v1(j, p_state);
BEGIN
    SELECT * INTO q FROM queue WHERE name = j.queue;
    IF p_state = 5 AND j.on_dead IS NOT NULL THEN
        v_signals := v_signals || leave_handler_v1(j, p_now);
    END IF;
    UPDATE job SET state = p_state, ended_at = p_now, expires_at = NULL, token = NULL, back = false, gated = false,
        waits_for = 0, suspect = j.suspect, attempts = j.attempts, crashes = j.crashes, losses = j.losses,
        failures = j.failures, settled_fence = j.settled_fence, started_at = j.started_at
    WHERE id = j.id;
    IF j.state = 0 THEN
        DELETE FROM wait WHERE child = j.id;
    ELSIF j.state = 3 THEN
        v_signals := v_signals || left_running_v1(j, q);
    END IF;
    PERFORM count_finished_v1(j.queue, 0, 0, (p_state = 5)::integer, (p_state = 6)::integer, p_now);
    v_signals := v_signals || tell_waiters_v1(ARRAY[j.id], p_now);
    IF j.has_children THEN
        INSERT INTO ripple (parent, state) VALUES (j.id, p_state);
    END IF;
    IF keeps_nothing_v1(q, p_state) THEN
        PERFORM bury_v1(ARRAY[j.id]);
    END IF;
    RETURN v_signals;
END $$;

CREATE FUNCTION unblock_v1(j job, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    IF j.due_at > p_now THEN
        RETURN to_scheduled_v1(j, j.due_at);
    END IF;
    RETURN to_ready_v1(j, false, p_now);
END $$;

CREATE FUNCTION cancel_child_v1(j job, p_parent text, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    j := append_failure_v1(j, said_v1('parent', 'a parent did not complete: ' || p_parent), j.attempts, NULL, p_now);
    RETURN to_final_v1(j, 6, p_now);
END $$;

-- Tell up to p_limit children that a parent ended, oldest entry first. A child that somebody else has
-- locked is left out, and so is an entry: the next step goes on there.
CREATE FUNCTION tell_v1(p_limit integer, p_now bigint, OUT moved integer, OUT unfinished boolean, OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    r ripple;
    j job;
    v_child bytea;
    v_children bytea[];
BEGIN
    moved := 0;
    unfinished := false;
    signals := '{}';
    LOOP
        SELECT * INTO r FROM ripple ORDER BY pk LIMIT 1;
        EXIT WHEN NOT FOUND;
        unfinished := true;
        EXIT WHEN moved >= p_limit;
        SELECT * INTO r FROM ripple WHERE pk = r.pk FOR UPDATE SKIP LOCKED;
        EXIT WHEN NOT FOUND;
        v_children := ARRAY(
            SELECT child FROM wait WHERE parent = r.parent AND told < r.pk
            ORDER BY told, born LIMIT p_limit - moved
        );
        IF v_children = '{}' THEN
            DELETE FROM ripple WHERE pk = r.pk;
            unfinished := false;
            CONTINUE;
        END IF;
        FOREACH v_child IN ARRAY v_children LOOP
            SELECT * INTO j FROM job WHERE id = v_child FOR NO KEY UPDATE SKIP LOCKED;
            IF NOT FOUND THEN
                RETURN;
            END IF;
            moved := moved + 1;
            IF j.state <> 0 THEN
                DELETE FROM wait WHERE parent = r.parent AND child = v_child;
            ELSIF r.state = 4 OR (r.state <> -1 AND j.parent_died = 'run') THEN
                DELETE FROM wait WHERE parent = r.parent AND child = v_child;
                IF j.waits_for = 1 THEN
                    signals := signals || unblock_v1(j, p_now);
                ELSE
                    UPDATE job SET waits_for = waits_for - 1 WHERE id = v_child;
                END IF;
            ELSIF r.state = -1 OR j.parent_died = 'cancel' THEN
                signals := signals || cancel_child_v1(
                    j, CASE WHEN r.state = -1 THEN 'which was deleted' ELSE show_id_v1(r.parent) END, p_now);
            ELSE
                UPDATE wait SET told = r.pk WHERE parent = r.parent AND child = v_child;
            END IF;
        END LOOP;
    END LOOP;
END $$;

CREATE FUNCTION show_id_v1(p_id bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT encode(p_id, 'hex')::uuid::text
$$;

-- A finished job goes, with everything kept about it.
CREATE FUNCTION delete_v1(p_ids bytea[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM forget_parts_v1(p_ids);
    DELETE FROM watch WHERE job = ANY (p_ids);
    INSERT INTO ripple (parent, state) SELECT id, -1 FROM job WHERE id = ANY (p_ids) AND has_children;
    DELETE FROM job WHERE id = ANY (p_ids);
END $$;

-- Release a job for somebody who cannot: its place in the lane is kept.
CREATE FUNCTION give_back_v1(j job, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    IF j.cancel_asked THEN
        RETURN to_final_v1(j, 6, p_now);
    END IF;
    RETURN to_ready_v1(j, true, p_now);
END $$;

-- model.crash: after_claimant_lost, after_member_lost. p_verdict: suspect, crash; lost: with its member, which
-- says nothing about it.
CREATE FUNCTION lose_v1(j job, p_verdict text, p_said bytea, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_crashed boolean := p_verdict = 'crash' OR (p_verdict = 'lost' AND j.suspect AND j.started_at IS NOT NULL);
BEGIN
    j := append_failure_v1(
        j, coalesce(p_said, said_v1(CASE WHEN v_crashed THEN 'crash' ELSE 'lost' END, 'its member vanished')),
        j.attempts + 1, NULL, p_now);
    j.crashes := j.crashes + v_crashed::integer;
    IF p_verdict = 'lost' THEN
        j.losses := j.losses + 1;
        j.suspect := j.suspect OR j.losses >= 2;
    ELSE
        j.suspect := true;
    END IF;
    IF j.cancel_asked THEN
        RETURN to_final_v1(j, 6, p_now);
    ELSIF j.crashes >= 3 THEN
        RETURN to_final_v1(j, 5, p_now);
    END IF;
    RETURN to_ready_v1(j, true, p_now);
END $$;

-- A ready job that was asked for by its id.
CREATE FUNCTION expire_one_v1(p_id bytea, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    j job;
BEGIN
    SELECT * INTO j FROM job WHERE id = p_id AND state::integer = 2 FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN '{}';
    END IF;
    j := append_failure_v1(j, said_v1('expired', 'not started before it expired'), j.attempts, NULL, p_now);
    RETURN to_final_v1(j, 5, p_now);
END $$;

-- `stopped`: before the limit, because of HANDLED_LIMIT.
CREATE FUNCTION expire_v1(p_queue text, p_limit integer, p_now bigint,
                          OUT moved integer, OUT stopped boolean, OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    j job;
    v_handled bigint := 0;
BEGIN
    moved := 0;
    stopped := false;
    signals := '{}';
    FOR j IN SELECT * FROM job WHERE queue = p_queue AND expires_at <= p_now AND state <= 2
             ORDER BY expires_at LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED LOOP
        j := append_failure_v1(j, said_v1('expired', 'not started before it expired'), j.attempts, NULL, p_now);
        signals := signals || to_final_v1(j, 5, p_now);
        moved := moved + 1;
        v_handled := v_handled + CASE WHEN j.on_dead IS NOT NULL THEN length(j.body) ELSE 0 END;
        stopped := v_handled >= 4194304;
        EXIT WHEN stopped;
    END LOOP;
END $$;

-- Move due jobs of one queue to ready in the order of due time, then of their former seq. Under a lock of its
-- own: two promoters could else draw seqs against the order of due times.
CREATE FUNCTION due_v1(q queue, p_limit integer, p_now bigint, OUT moved integer, OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    v_ids bytea[];
BEGIN
    moved := 0;
    signals := '{}';
    IF NOT EXISTS (SELECT 1 FROM job WHERE state = 1 AND queue = q.name AND due_at <= p_now) THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(lock_v1('due', q.name));
    PERFORM pg_current_xact_id();  -- and the queue is read after it: see `reshaped` in claim_v1
    SELECT * INTO q FROM queue WHERE name = q.name;
    WITH due AS (
        SELECT id, nextval('seq') AS seq FROM (
            SELECT id FROM job WHERE state = 1 AND queue = q.name AND due_at <= p_now
            ORDER BY due_at, seq LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED
        ) AS in_order
    ), changed AS (
        UPDATE job SET state = 2, seq = due.seq, back = false, xid = pg_current_xact_id(), ready_at = p_now,
            lane = group_of_v1(q.keyed, q.tasks, task, key)
        FROM due WHERE job.id = ANY (ARRAY[due.id])
        RETURNING job.id, job.seq, priority, suspect, lane, task, key
    ), announced AS (
        INSERT INTO lane_new (queue, priority, suspect, lane, task, key)
        SELECT DISTINCT q.name, priority, suspect, lane, CASE WHEN q.tasks ? task THEN task ELSE '' END,
            CASE WHEN q.keyed THEN key ELSE '' END
        FROM changed WHERE lane <> ''
    )
    SELECT count(*), array_agg(m.id ORDER BY m.seq) INTO moved, v_ids FROM changed AS m;
    signals := named_all_v1(v_ids);
END $$;

-- The queue of this name; one that so far only a user's transaction has named is made now.
CREATE FUNCTION queue_v1(p_name text, p_now bigint) RETURNS queue LANGUAGE plpgsql AS $$
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

CREATE FUNCTION audit_v1(p_by text, p_action text, p_target text, p_detail text, p_now bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO audit (at, by, action, target, detail)
    SELECT p_now, p_by, p_action, p_target, p_detail WHERE p_by <> ''
$$;

-- One entry for a call about several jobs.
CREATE FUNCTION audit_jobs_v1(p_by text, p_action text, p_ids bytea[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(p_ids) > 0 THEN
        PERFORM audit_v1(p_by, p_action, show_id_v1(p_ids[1])
            || CASE WHEN cardinality(p_ids) > 1 THEN ' and ' || (cardinality(p_ids) - 1) || ' more' ELSE '' END,
            '', p_now);
    END IF;
END $$;
