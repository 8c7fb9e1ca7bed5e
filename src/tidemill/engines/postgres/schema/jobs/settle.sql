-- Recording outcomes, fenced, and what a run says about itself. A run is found by (id, token): with `state = 3` as well
-- the planner would walk all running jobs (half the throughput).

-- Completions: the ids of those that were applied.
CREATE FUNCTION complete_v1(p_ids bytea[], p_fences bigint[], p_rans bigint[], p_results bytea[], p_now bigint,
                            OUT applied bytea[], OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    v_small text[] := '{}';   -- queues that drop body and result
    v_none text[] := '{}';    -- queues that keep nothing but a tombstone
    v_queues text[];
    v_tasks text[];
    v_keys text[];
    v_parents boolean;
    v_unique boolean;
BEGIN
    IF EXISTS (SELECT 1 FROM queue WHERE NOT keeps_all) THEN
        SELECT coalesce(array_agg(name) FILTER (WHERE NOT keep_body), '{}'),
               coalesce(array_agg(name) FILTER (WHERE keeps_nothing_v1(queue, 4)), '{}')
        INTO v_small, v_none FROM queue WHERE NOT keeps_all;
    END IF;
    -- Below, with `token =` the planner may prove that job_running would do, and walk every running job.
    WITH done AS (
        UPDATE job AS j SET state = 4, token = NULL, attempts = attempts + 1, settled_fence = i.fence, gated = false,
            expires_at = NULL, started_at = coalesce(started_at, p_now - i.ran), ended_at = p_now,
            form = CASE WHEN queue = ANY (v_none) THEN 2 WHEN queue = ANY (v_small) THEN 1 ELSE form END,
            body = CASE WHEN queue = ANY (v_small) OR queue = ANY (v_none) THEN NULL ELSE body END,
            result = CASE WHEN queue = ANY (v_small) OR queue = ANY (v_none) THEN NULL ELSE i.result END
        FROM unnest(p_ids, p_fences, p_rans, p_results) AS i (id, fence, ran, result)
        WHERE j.id = ANY (ARRAY[i.id]) AND j.token IS NOT DISTINCT FROM i.fence
        RETURNING j.id, j.queue, j.task, j.key, j.has_children, j.unique_until
    )
    SELECT coalesce(array_agg(id), '{}'), coalesce(array_agg(queue), '{}'), coalesce(array_agg(task), '{}'),
           coalesce(array_agg(key), '{}'), coalesce(bool_or(has_children), false), coalesce(bool_or(unique_until <= 1), false)
    INTO applied, v_queues, v_tasks, v_keys, v_parents, v_unique FROM done;
    signals := '{}';
    IF applied = '{}' THEN
        RETURN;
    END IF;
    INSERT INTO finished_new (queue, minute, completed, failed, dead, cancelled)
    SELECT u, p_now - p_now % 60000000, count(*), 0, 0, 0 FROM unnest(v_queues) AS u GROUP BY u;
    signals := notify_waiters_v1(applied, p_now);
    IF EXISTS (SELECT 1 FROM queue WHERE name = ANY (v_queues) AND counts_runs) THEN
        INSERT INTO freed (queue, task, key)
        SELECT DISTINCT u.queue, CASE WHEN q.tasks ? u.task THEN u.task ELSE '' END,
            CASE WHEN q.key_limited THEN u.key ELSE '' END
        FROM unnest(v_queues, v_tasks, v_keys) AS u (queue, task, key)
        JOIN queue AS q ON q.name = u.queue WHERE q.counts_runs;
        signals := signals || ARRAY(SELECT 'ready:' || name FROM queue WHERE name = ANY (v_queues) AND counts_runs);
    END IF;
    IF v_unique THEN
        PERFORM free_keys_v1(applied);
    END IF;
    IF v_parents THEN
        INSERT INTO ended_parent (parent, state)
        SELECT j.id, 4 FROM unnest(p_ids) WITH ORDINALITY AS u (id, position) JOIN job AS j ON j.id = ANY (ARRAY[u.id])
        WHERE j.has_children AND u.id = ANY (applied) ORDER BY u.position;
    END IF;
    IF v_none && v_queues THEN
        PERFORM bury_v1(ARRAY(SELECT u.id FROM unnest(applied, v_queues) AS u (id, queue) WHERE queue = ANY (v_none)));
    END IF;
END $$;

-- One outcome: 0 completed, 1 failed, 2 stopped, 3 crashed. Answers 0 applied, 1 already, 2 stale.
CREATE FUNCTION settle_one_v1(
    p_id bytea, p_fence bigint, p_kind integer, p_ran bigint, p_result bytea, p_said bytea, p_retry_in bigint,
    p_now bigint, OUT answer integer, OUT signals text[]
) LANGUAGE plpgsql AS $$
DECLARE
    j job;
BEGIN
    answer := 0;
    signals := '{}';
    SELECT * INTO j FROM job WHERE id = p_id AND token IS NOT DISTINCT FROM p_fence FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        answer := CASE WHEN EXISTS (SELECT 1 FROM job WHERE id = p_id AND settled_fence = p_fence) THEN 1 ELSE 2 END;
        RETURN;
    END IF;
    IF p_kind = 0 THEN
        SELECT c.signals INTO signals
        FROM complete_v1(ARRAY[p_id], ARRAY[p_fence], ARRAY[p_ran], ARRAY[p_result], p_now) AS c;
        RETURN;
    END IF;
    j.settled_fence := p_fence;
    j.started_at := coalesce(j.started_at, p_now - p_ran);
    IF p_kind = 1 THEN
        j.attempts := j.attempts + 1;
        j := append_failure_v1(j, p_said, j.attempts, CASE WHEN NOT j.cancel_requested THEN p_retry_in END, p_now);
        PERFORM count_finished_v1(j.queue, 0, 1, 0, 0, p_now);
        IF j.cancel_requested THEN
            signals := to_final_v1(j, 6, p_now);
        ELSIF p_retry_in IS NOT NULL THEN
            signals := to_scheduled_v1(j, p_now + p_retry_in);
        ELSE
            signals := to_final_v1(j, 5, p_now);
        END IF;
    ELSIF p_kind = 2 THEN
        signals := to_final_v1(j, 6, p_now);
    ELSE
        signals := lose_run_v1(j, 'crash', p_said, p_now);
    END IF;
END $$;

-- Outcomes, what follows from them, and the next claim, which sees the freed permits because it comes in later
-- statements. p_one_by_one: the call names a job twice, so each outcome is judged after the one before it.
--   p_then               17 arrays as for enqueue_v1, the first with the position of the outcome that each job follows
--   p_schedules_of, ...  positions of outcomes, and the schedules whose next time they set, of these versions
-- The first row's head has `answers` (0 applied, 1 already, 2 stale), signals, and the claim's own under `claim`.
CREATE FUNCTION settle_v1(
    p_ids bytea[], p_fences bigint[], p_kinds smallint[], p_rans bigint[], p_results bytea[], p_saids bytea[],
    p_retry_ins bigint[], p_one_by_one boolean,
    p_then_of integer[], p_then_ids bytea[], p_then_tasks text[], p_then_queues text[], p_then_priorities smallint[],
    p_then_bodies bytea[], p_then_codecs smallint[], p_then_headers bytea[], p_then_keys text[],
    p_then_delays bigint[], p_then_ats bigint[], p_then_expires bigint[], p_then_timeouts bigint[],
    p_then_retries bytea[], p_then_attempts integer[], p_then_on_deads text[], p_then_schedules text[],
    p_schedules_of integer[], p_schedules text[], p_schedule_ins bigint[], p_schedule_versions bigint[], p_now bigint,
    p_member bytea, p_claimant bytea, p_number bigint, p_queues text[], p_mosts integer[], p_most integer,
    p_suspects integer, p_claim_ids bytea[], p_cursors bigint[], p_lanes jsonb, p_turns jsonb, p_unknown text[]
) RETURNS SETOF claim_answer_v1 LANGUAGE plpgsql AS $$
DECLARE
    a claim_answer_v1;
    v_now bigint;
    v_applied bytea[];
    v_answers integer[];
    v_signals text[] := '{}';
    v_more text[];
    v_stored bytea[];
    v_answer integer;
    n integer;
BEGIN
    IF p_claimant IS NOT NULL THEN
        PERFORM lock_before_settle_v1(p_member, p_claimant, p_queues, p_claim_ids, p_then_queues);
    END IF;
    v_now := coalesce(p_now, instant_v1());
    IF NOT p_one_by_one AND 0 = ALL (p_kinds) THEN
        SELECT c.applied, c.signals INTO v_applied, v_signals
        FROM complete_v1(p_ids, p_fences, p_rans, p_results, v_now) AS c;
        IF cardinality(v_applied) = cardinality(p_ids) THEN
            v_answers := array_fill(0, ARRAY[cardinality(p_ids)]);
        ELSE
            v_answers := ARRAY(
                SELECT CASE WHEN u.id = ANY (v_applied) THEN 0 WHEN j.settled_fence = u.fence THEN 1 ELSE 2 END
                FROM unnest(p_ids, p_fences) WITH ORDINALITY AS u (id, fence, position)
                LEFT JOIN job AS j ON j.id = u.id ORDER BY u.position);
        END IF;
    ELSE
        PERFORM lock_jobs_v1(p_ids, 3, 3);
        v_answers := '{}';
        FOR n IN 1 .. cardinality(p_ids) LOOP
            SELECT s.answer, s.signals INTO v_answer, v_more
            FROM settle_one_v1(p_ids[n], p_fences[n], p_kinds[n], p_rans[n], p_results[n], p_saids[n], p_retry_ins[n],
                               v_now) AS s;
            v_answers := v_answers || v_answer;
            v_signals := v_signals || v_more;
        END LOOP;
    END IF;
    IF p_then_of <> '{}' THEN
        SELECT store_v1(
            array_agg(t.a ORDER BY t.position), array_agg(t.b ORDER BY t.position), array_agg(t.c ORDER BY t.position),
            array_agg(t.d ORDER BY t.position), array_agg(t.e ORDER BY t.position), array_agg(t.f ORDER BY t.position),
            array_agg(t.g ORDER BY t.position), array_agg(t.h ORDER BY t.position), array_agg(t.i ORDER BY t.position),
            array_agg(t.k ORDER BY t.position), array_agg(t.l ORDER BY t.position), array_agg(t.m ORDER BY t.position),
            array_agg(t.n ORDER BY t.position), array_agg(t.o ORDER BY t.position), array_agg(t.p ORDER BY t.position),
            array_agg(t.q ORDER BY t.position), v_now)
        INTO v_stored FROM unnest(p_then_of, p_then_ids, p_then_tasks, p_then_queues, p_then_priorities, p_then_bodies,
                    p_then_codecs, p_then_headers, p_then_keys, p_then_delays, p_then_ats, p_then_expires,
                    p_then_timeouts, p_then_retries, p_then_attempts, p_then_on_deads, p_then_schedules)
            WITH ORDINALITY AS t (item, a, b, c, d, e, f, g, h, i, k, l, m, n, o, p, q, position)
        WHERE v_answers[t.item] = 0 HAVING count(*) > 0;
        v_signals := v_signals || named_all_v1(v_stored)
            || ARRAY(SELECT DISTINCT 'ready:' || u FROM unnest(p_then_queues) AS u);
    END IF;
    IF p_schedules_of <> '{}' THEN
        UPDATE schedule AS s SET next_at = v_now + u.ahead
        FROM unnest(p_schedules_of, p_schedules, p_schedule_ins, p_schedule_versions) AS u (item, name, ahead, version)
        WHERE s.name = u.name AND v_answers[u.item] = 0 AND s.version = coalesce(u.version, s.version);
    END IF;
    IF EXISTS (SELECT 1 FROM ended_parent) THEN
        v_signals := v_signals || (SELECT t.signals FROM update_dependents_v1(1000, v_now) AS t);
    END IF;
    a.head := jsonb_build_object('answers', to_jsonb(v_answers), 'signals', to_jsonb(v_signals));
    RETURN NEXT a;
    IF p_claimant IS NOT NULL THEN
        RETURN QUERY SELECT * FROM claim_plain_v1(
            p_member, p_claimant, p_number, p_queues, p_mosts, p_most, p_suspects, p_claim_ids, p_cursors, p_lanes,
            p_turns, p_unknown, p_now, true);
    END IF;
END $$;

-- Release jobs without using an attempt.
CREATE FUNCTION release_v1(p_ids bytea[], p_fences bigint[], p_delays bigint[], p_reasons text[], p_now bigint,
                           OUT answers integer[], OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    j job;
    v_now bigint;
BEGIN
    answers := '{}';
    signals := '{}';
    PERFORM lock_jobs_v1(p_ids, 3, 3);
    v_now := coalesce(p_now, instant_v1());
    FOR n IN 1 .. cardinality(p_ids) LOOP
        SELECT * INTO j FROM job WHERE id = p_ids[n];
        IF j.fence IS DISTINCT FROM p_fences[n] OR j.settled_fence = p_fences[n] THEN
            answers := answers || 2;
        ELSIF j.token IS NULL THEN
            answers := answers || 1;
        ELSE
            answers := answers || 0;
            j.snoozes := j.snoozes + (p_reasons[n] IS NOT DISTINCT FROM 'snooze')::integer;
            IF j.cancel_requested THEN
                signals := signals || to_final_v1(j, 6, v_now);
            ELSIF p_delays[n] IS NOT NULL THEN
                signals := signals || to_scheduled_v1(j, v_now + p_delays[n], p_reasons[n]);
            ELSE
                signals := signals || to_ready_v1(j, true, v_now, p_reasons[n]);
            END IF;
        END IF;
    END LOOP;
    signals := signals || (SELECT t.signals FROM update_dependents_v1(1000, v_now) AS t);
END $$;

-- What runs say about themselves: 0 started, 1 progress, 2 log line, 3 checkpoint. p_names: the level of a line,
-- the name of a checkpoint. Answers whether each was applied.
CREATE FUNCTION write_v1(
    p_ids bytea[], p_fences bigint[], p_kinds smallint[], p_numbers bigint[], p_names text[], p_values bytea[],
    p_now bigint
) RETURNS boolean[] LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint;
    v_applied boolean[];
    v_job bytea;
BEGIN
    PERFORM lock_jobs_v1(p_ids, 3, 3);
    v_now := coalesce(p_now, instant_v1());
    v_applied := ARRAY(
        SELECT j.id IS NOT NULL FROM unnest(p_ids, p_fences) WITH ORDINALITY AS u (id, fence, position)
        LEFT JOIN job AS j ON j.id = u.id AND j.token IS NOT DISTINCT FROM u.fence ORDER BY u.position);
    IF NOT true = ANY (v_applied) THEN
        RETURN v_applied;
    END IF;
    IF 0 = ANY (p_kinds) OR 1 = ANY (p_kinds) THEN
        UPDATE job AS j SET started_at = CASE WHEN s.started THEN coalesce(j.started_at, v_now) ELSE j.started_at END,
            progress = coalesce(s.progress, j.progress)
        FROM (
            SELECT u.id, bool_or(u.kind = 0) AS started,
                (array_agg(u.value ORDER BY u.position DESC) FILTER (WHERE u.kind = 1))[1] AS progress
            FROM unnest(p_ids, p_kinds, p_values, v_applied) WITH ORDINALITY AS u (id, kind, value, applied, position)
            WHERE u.applied AND u.kind <= 1 GROUP BY u.id
        ) AS s WHERE j.id = ANY (ARRAY[s.id]);
    END IF;
    IF 2 = ANY (p_kinds) THEN
        INSERT INTO log (job, fence, number, at, level, message)
        SELECT u.id, u.fence, u.number, v_now, u.name, u.value
        FROM unnest(p_ids, p_fences, p_kinds, p_numbers, p_names, p_values, v_applied)
            WITH ORDINALITY AS u (id, fence, kind, number, name, value, applied, position)
        WHERE u.applied AND u.kind = 2 ORDER BY u.position
        ON CONFLICT DO NOTHING;
        FOR v_job IN SELECT DISTINCT u.id FROM unnest(p_ids, p_kinds, v_applied) AS u (id, kind, applied)
                     WHERE u.applied AND u.kind = 2 LOOP
            DELETE FROM log WHERE job = v_job AND (fence, number) <= (  -- keep the newest: by the primary key
                SELECT fence, number FROM log WHERE job = v_job ORDER BY fence DESC, number DESC OFFSET 1000 LIMIT 1);
        END LOOP;
    END IF;
    IF 3 = ANY (p_kinds) THEN
        FOR n IN 1 .. cardinality(p_ids) LOOP
            IF v_applied[n] AND p_kinds[n] = 3 THEN
                INSERT INTO checkpoint (job, name, number, value)
                SELECT p_ids[n], p_names[n], count(*), p_values[n] FROM checkpoint WHERE job = p_ids[n]
                ON CONFLICT DO NOTHING;
            END IF;
        END LOOP;
    END IF;
    RETURN v_applied;
END $$;
