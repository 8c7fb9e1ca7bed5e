-- Locks. Every step takes its advisory locks in this order: sweep, member, claimant, queue, due, fence. It takes row locks
-- in the order of ids. So two steps never wait for each other.

-- The number of an advisory lock, different in each namespace.
CREATE FUNCTION lock_v1(p_kind text, p_name text) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT hashtextextended(p_kind || ' ' || p_name, 'job'::regclass::oid::bigint)
$$;

-- Lock jobs named by the caller, in the order of their ids, if they are in these states. The cast keeps the
-- planner from the partial indexes of a state, which it would walk whole: here and wherever a row is known by
-- its id or its position, `state::integer` is compared.
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

-- Lock running jobs: those that are free at once, the others if they become free soon (a settle on its way). The
-- ids of those that were locked.
CREATE FUNCTION lock_soon_v1(p_ids bytea[]) RETURNS bytea[] LANGUAGE plpgsql AS $$
DECLARE
    v_locked bytea[];
    v_id bytea;
    v_timeout text := current_setting('lock_timeout');
BEGIN
    v_locked := ARRAY(
        SELECT j.id FROM (SELECT DISTINCT u.id FROM unnest(p_ids) AS u (id) ORDER BY u.id) AS named
        JOIN job AS j ON j.id = ANY (ARRAY[named.id]) WHERE j.state::integer = 3
        FOR NO KEY UPDATE OF j SKIP LOCKED);
    IF cardinality(v_locked) < cardinality(p_ids) THEN
        BEGIN
            PERFORM set_config('lock_timeout', '100ms', true);
            FOR v_id IN SELECT u.id FROM unnest(p_ids) AS u (id) WHERE u.id <> ALL (v_locked) ORDER BY u.id LOOP
                PERFORM 1 FROM job WHERE id = v_id AND state::integer = 3 FOR NO KEY UPDATE;
                v_locked := v_locked || v_id;
            END LOOP;
        EXCEPTION WHEN lock_not_available OR deadlock_detected THEN
            NULL;  -- what was locked here is free again, and is not touched: it does not run any more
        END;
        PERFORM set_config('lock_timeout', v_timeout, true);
        v_locked := ARRAY(
            SELECT j.id FROM unnest(v_locked) AS u (id) JOIN job AS j ON j.id = ANY (ARRAY[u.id]) WHERE j.state::integer = 3
            FOR NO KEY UPDATE OF j SKIP LOCKED);
    END IF;
    RETURN v_locked;
END $$;
