-- Retention: ended jobs are deleted by the age and the count that their queue keeps.

-- The newest job of a state that is beyond the queue's bound by count: a walk over that many index entries.
CREATE FUNCTION beyond_count_v1(q queue, p_state integer) RETURNS bigint[] LANGUAGE sql STABLE AS $$
    SELECT ARRAY[j.ended_at, j.born] FROM job AS j
    WHERE j.queue = q.name AND j.state = p_state::smallint AND j.state >= 4 AND j.form < 2
    ORDER BY j.ended_at DESC, j.born DESC OFFSET q.keep_counts[p_state - 3] LIMIT 1
$$;

CREATE FUNCTION with_mark_v1(p_marks jsonb, p_queue text, p_state integer, p_mark bigint[]) RETURNS jsonb
LANGUAGE sql IMMUTABLE AS $$
    SELECT p_marks || jsonb_build_object(
        p_queue, coalesce(p_marks -> p_queue, '{}') || jsonb_build_object(p_state, to_jsonb(p_mark)))
$$;

-- Retention, in steps that stay short: at most p_limit jobs. From 500 jobs on it stops once p_budget microseconds have
-- passed, and answers `more`.
--   p_anew   search again for what is beyond counts of more than 10,000, and begin at the oldest end
--   p_marks  otherwise the last answer: {queue: {state: [version, ended, born, from]}}: of that version of the queue
--            the newest job beyond its count, and the end of the last one deleted. Deleted rows leave index entries,
--            which stay while a transaction holds the horizon back; the next call starts after them.
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
    v_periods integer;
    v_limit integer;
    v_deadline timestamptz;
BEGIN
    pruned := 0;
    more := p_limit <= 0;
    marks := CASE WHEN p_anew THEN '{}' ELSE p_marks END;
    IF p_anew THEN  -- the long walks: before the clock starts, and before anything is locked
        FOR q IN SELECT * FROM queue WHERE 10000 < ANY (keep_counts) ORDER BY name LOOP
            FOR v_state IN 4 .. 6 LOOP
                CONTINUE WHEN coalesce(q.keep_counts[v_state - 3], 0) <= 10000;
                v_bound := beyond_count_v1(q, v_state);
                CONTINUE WHEN v_bound IS NULL;
                marks := with_mark_v1(marks, q.name, v_state, q.version || v_bound || -1::bigint);
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
                v_bound := coalesce(beyond_count_v1(q, v_state), v_bound);
            END IF;
            IF q.keep_ages[v_state - 3] IS NOT NULL THEN
                v_bound := greatest(v_bound, ARRAY[v_now - q.keep_ages[v_state - 3], 9223372036854775807]);
            END IF;
            WHILE NOT more AND v_from <= v_bound[1] LOOP
                v_limit := least(500, p_limit - pruned);
                SELECT coalesce(array_agg(s.id), '{}'), greatest(max(s.ended_at), v_from) INTO v_ids, v_from FROM (
                    SELECT id, ended_at FROM job
                    WHERE queue = q.name AND state = v_state AND state >= 4 AND form < 2
                      AND ended_at >= v_from AND (ended_at, born) <= (v_bound[1], v_bound[2])
                    ORDER BY ended_at, born LIMIT v_limit FOR UPDATE SKIP LOCKED
                ) AS s;
                PERFORM delete_v1(v_ids);
                pruned := pruned + cardinality(v_ids);
                more := pruned >= p_limit OR (pruned >= 500 AND clock_timestamp() >= v_deadline);
                EXIT WHEN cardinality(v_ids) < v_limit;
            END LOOP;
            IF v_from >= 0 OR v_known[1] >= 0 THEN
                marks := with_mark_v1(marks, q.name, v_state, q.version || v_known || v_from);
            END IF;
        END LOOP;
    END LOOP;
    v_from := coalesce((marks #>> '{"",0,0}')::bigint, -1);  -- no queue has this name: the tombstones
    WHILE NOT more LOOP
        v_limit := least(500, p_limit - pruned);
        SELECT coalesce(array_agg(s.id), '{}'), greatest(max(s.ended_at), v_from) INTO v_ids, v_from FROM (
            SELECT id, ended_at FROM job WHERE form = 2 AND ended_at >= v_from AND ended_at <= v_now - 3600000000
            ORDER BY ended_at LIMIT v_limit FOR UPDATE SKIP LOCKED
        ) AS s;
        PERFORM delete_v1(v_ids);
        pruned := pruned + cardinality(v_ids);
        more := pruned >= p_limit OR (pruned >= 500 AND clock_timestamp() >= v_deadline);
        marks := with_mark_v1(marks, '', 0, ARRAY[v_from]);
        EXIT WHEN cardinality(v_ids) < v_limit;
    END LOOP;
    -- bounded too; the condition stands twice because a row may have changed since it was chosen
    DELETE FROM watch
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM watch WHERE until <= v_now LIMIT 1000)) AND until <= v_now;
    -- a busy rate writes more than a thousand of these a minute: where some are left, the next call comes at once
    DELETE FROM start
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM start WHERE until <= v_now LIMIT 5000)) AND until <= v_now;
    GET DIAGNOSTICS v_starts = ROW_COUNT;
    more := more OR v_starts = 5000;
    DELETE FROM unique_period
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM unique_period WHERE until <= v_now LIMIT 1000 FOR UPDATE SKIP LOCKED));
    GET DIAGNOSTICS v_periods = ROW_COUNT;
    more := more OR v_periods = 1000;
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
    PERFORM fold_stats_v1(v_now);
    PERFORM forget_stats_v1(v_now - 32 * 86400000000);
    signals := (SELECT t.signals FROM update_dependents_v1(1000, v_now) AS t);
END $$;
