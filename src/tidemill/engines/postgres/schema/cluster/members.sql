-- Members: their heartbeats, and the runs that they leave behind.

-- The runs of a claimant. They are found claim by claim, through `claimed`: beside a held snapshot the index of running jobs
-- has an entry for everything that was ever claimed, and because of one job that runs for long all later ones would be walked. OFFSET 0 keeps that order. (Joined with the claimant, the rows of `claimed` were all walked by a plan that was made while each
-- claimant had one: 50 ms a heartbeat beside 100,000 deleted ones.)
CREATE FUNCTION running_v1(p_claimant bytea)
RETURNS TABLE (id bytea, token bigint, claim_no bigint, cancel_requested boolean) LANGUAGE sql STABLE AS $$
    SELECT h.id, h.token, h.claim_no, h.cancel_requested
    FROM (
        SELECT m.number FROM claimed AS m WHERE m.claimant = p_claimant
          AND m.number >= (SELECT c.oldest FROM claimant AS c WHERE c.id = p_claimant) OFFSET 0
    ) AS marks
    CROSS JOIN LATERAL (
        SELECT j.id, j.token, j.claim_no, j.cancel_requested FROM job AS j
        WHERE j.claimant = p_claimant AND j.claim_no = marks.number AND j.token IS NOT NULL OFFSET 0
    ) AS h
$$;

-- Delete the rows of claims of which nothing runs. Claims up to p_answered were answered, so their runs are known; the last
-- claim may be repeated. NULL: the claimant is retired, and will not claim again. (Sweeps read the rows of all claimants
-- that are remembered: a thousand with 300 each took a second.)
CREATE FUNCTION forget_claims_v1(p_claimant bytea, p_answered bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_from bigint;
    v_to bigint := CASE WHEN p_answered IS NULL THEN 9223372036854775807
                        ELSE least(last_claim_v1(p_claimant), p_answered + 1) END;
    v_gone bigint[];
BEGIN
    SELECT oldest INTO v_from FROM claimant WHERE id = p_claimant;
    v_gone := ARRAY(
        SELECT m.number FROM claimed AS m
        WHERE m.claimant = p_claimant AND m.number >= v_from AND m.number < v_to
          AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.claimant = p_claimant AND j.claim_no = m.number
                          AND j.token IS NOT NULL OFFSET 0));
    IF v_gone <> '{}' THEN
        DELETE FROM claimed WHERE claimant = p_claimant AND number = ANY (v_gone);
        UPDATE claimant AS c SET oldest = coalesce((
            SELECT m.number FROM claimed AS m WHERE m.claimant = p_claimant AND m.number >= v_from
            ORDER BY m.number LIMIT 1), v_to)
        WHERE c.id = p_claimant;
    END IF;
END $$;

-- A heartbeat: the member lives, and says which runs its claimants hold. p_held_of: for each held fence the number of its
-- claimant in p_claimants. Runs that were answered and are not held are released. p_batch: the number of a batch of statistics,
-- whose rows follow (add_stats_v1), or NULL.
CREATE FUNCTION heartbeat_v1(
    p_id bytea, p_name text, p_info bytea, p_heartbeat bigint, p_lease bigint, p_claimants bytea[], p_answered bigint[],
    p_held_of integer[], p_held bigint[], p_batch bigint, p_grains integer[], p_queues text[], p_tasks text[], p_packed text[],
    p_now bigint,
    OUT number bigint, OUT at bigint, OUT new boolean, OUT lost bigint[], OUT stop_ids bytea[],
    OUT stop_fences bigint[], OUT options bigint, OUT signals text[]
) LANGUAGE plpgsql AS $$
DECLARE
    m member;
    j job;
    r record;
    v_held bigint[];
    v_ids bytea[];
    v_tokens bigint[];
    v_numbers bigint[];
    v_astray bigint[];        -- held, but not running any more; then: running, but not held
BEGIN
    signals := '{}';
    lost := '{}';
    SELECT * INTO m FROM member WHERE id = p_id FOR UPDATE;  -- a sweeper skips it, or has deleted it
    new := NOT FOUND;
    at := coalesce(p_now, instant_v1());
    IF new THEN
        INSERT INTO member (id, name, info, heartbeat, lease, since, heartbeat_at, steady_since, gone_at, stats)
        VALUES (p_id, p_name, p_info, p_heartbeat, p_lease, at, at, at, at + p_lease, coalesce(p_batch, 0))
        ON CONFLICT (id) DO UPDATE SET heartbeat_at = excluded.heartbeat_at, gone_at = excluded.gone_at;
    ELSE
        UPDATE member SET name = p_name, info = p_info, heartbeat = p_heartbeat, lease = p_lease, heartbeat_at = at,
            steady_since = CASE WHEN at - m.heartbeat_at > 2 * p_heartbeat THEN at ELSE m.steady_since END, gone_at = at + p_lease,
            stats = greatest(stats, p_batch)
        WHERE id = p_id;
    END IF;
    IF p_batch > coalesce(m.stats, 0) THEN
        PERFORM add_stats_v1(p_grains, p_queues, p_tasks, p_packed, at);
    END IF;
    number := nextval('heartbeat');
    options := (SELECT coalesce(sum(q.version), 0) FROM queue AS q);  -- no row of its own, which all would wait for
    FOR n IN 1 .. cardinality(p_claimants) LOOP
        v_held := ARRAY(SELECT f FROM unnest(p_held_of, p_held) WITH ORDINALITY AS u (c, f, position)
                        WHERE c = n ORDER BY position);
        SELECT coalesce(array_agg(h.id), '{}'), coalesce(array_agg(h.token), '{}'), coalesce(array_agg(h.claim_no), '{}')
        INTO v_ids, v_tokens, v_numbers FROM running_v1(p_claimants[n]) AS h;
        -- EXCEPT hashes: `<> ALL` compares each with each (0.7 s for 5,800 held and 300 running)
        v_astray := ARRAY(SELECT unnest(v_held) EXCEPT SELECT unnest(v_tokens));
        lost := lost || ARRAY(SELECT f FROM unnest(v_astray) AS f ORDER BY array_position(v_held, f));
        v_astray := ARRAY(SELECT unnest(v_tokens) EXCEPT SELECT unnest(v_held));
        FOR r IN SELECT h.id, h.token FROM unnest(v_ids, v_tokens, v_numbers) AS h (id, token, claim_no)
                 WHERE h.claim_no <= p_answered[n] AND h.token = ANY (v_astray) ORDER BY h.id LOOP
            -- By (id, token): a settle in flight wins or loses whole. One that is locked is left to the next heartbeat: a
            -- user's transaction that completes it may stay open for longer than a heartbeat may take.
            SELECT * INTO j FROM job WHERE id = r.id AND token IS NOT DISTINCT FROM r.token
            FOR NO KEY UPDATE SKIP LOCKED;
            IF FOUND THEN
                signals := signals || release_run_v1(j, at);
            END IF;
        END LOOP;
    END LOOP;
    SELECT coalesce(array_agg(a.id ORDER BY a.token), '{}'), coalesce(array_agg(a.token ORDER BY a.token), '{}')
    INTO stop_ids, stop_fences
    FROM claimant AS c CROSS JOIN LATERAL running_v1(c.id) AS a WHERE c.member = p_id AND a.cancel_requested;
    -- after the releases: what was released runs no more
    FOR n IN 1 .. cardinality(p_claimants) LOOP
        PERFORM forget_claims_v1(p_claimants[n], p_answered[n]);
    END LOOP;
    IF signals <> '{}' THEN
        signals := signals || (SELECT t.signals FROM update_dependents_v1(1000, at) AS t);
    END IF;
END $$;

-- What a member or one claimant holds, locked. The rows are read again under their locks: a settle that was on
-- its way has won.
CREATE FUNCTION held_v1(p_member bytea, p_claimant bytea, p_limit integer) RETURNS SETOF job
LANGUAGE plpgsql AS $$
DECLARE
    v_ids bytea[];
BEGIN
    IF p_member IS NULL THEN
        v_ids := ARRAY(SELECT r.id FROM running_v1(p_claimant) AS r);
    ELSE
        v_ids := ARRAY(SELECT r.id FROM claimant AS c CROSS JOIN LATERAL running_v1(c.id) AS r
                       WHERE c.member = p_member LIMIT p_limit);
    END IF;
    v_ids := lock_soon_v1(v_ids);
    RETURN QUERY
        SELECT j.* FROM unnest(v_ids) AS u (id) JOIN job AS j ON j.id = ANY (ARRAY[u.id])
        WHERE j.state::integer = 3 AND (p_claimant IS NULL OR j.claimant = p_claimant)
          AND (p_member IS NULL OR EXISTS (SELECT 1 FROM claimant AS c WHERE c.id = j.claimant AND c.member = p_member))
        ORDER BY j.token;
END $$;

-- None of a member's claimants may claim any more.
CREATE FUNCTION retire_all_v1(p_member bytea, p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_claimant bytea;
BEGIN
    FOR v_claimant IN UPDATE claimant SET retired_at = p_now WHERE member = p_member AND retired_at IS NULL RETURNING id LOOP
        PERFORM forget_claims_v1(v_claimant, NULL);
    END LOOP;
END $$;

-- A member signs off: what it still holds goes back, nothing is counted as lost.
CREATE FUNCTION leave_v1(p_member bytea, p_now bigint, OUT released integer, OUT signals text[]) LANGUAGE plpgsql AS $$
DECLARE
    j job;
    v_now bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(lock_v1('member', encode(p_member, 'hex')));
    PERFORM 1 FROM member WHERE id = p_member FOR UPDATE;  -- before its claimants, as a heartbeat does
    v_now := coalesce(p_now, instant_v1());
    released := 0;
    signals := '{}';
    FOR j IN SELECT * FROM held_v1(p_member, NULL, NULL) LOOP
        signals := signals || release_run_v1(j, v_now);
        released := released + 1;
    END LOOP;
    PERFORM retire_all_v1(p_member, v_now);
    DELETE FROM member WHERE id = p_member;
    signals := signals || (SELECT t.signals FROM update_dependents_v1(1000, v_now) AS t);
END $$;

-- A child is dead: its jobs go back, and it may not claim any more.
CREATE FUNCTION retire_v1(
    p_claimant bytea, p_ids bytea[], p_fences bigint[], p_verdicts text[], p_saids bytea[], p_now bigint,
    OUT held integer, OUT signals text[]
) LANGUAGE plpgsql AS $$
DECLARE
    j job;
    v_now bigint;
    v_at integer;
BEGIN
    PERFORM pg_advisory_xact_lock(lock_v1('claimant', encode(p_claimant, 'hex')));
    v_now := coalesce(p_now, instant_v1());
    held := 0;
    signals := '{}';
    INSERT INTO claimant (id, member, retired_at) VALUES (p_claimant, '', v_now)
    ON CONFLICT (id) DO UPDATE SET retired_at = coalesce(claimant.retired_at, v_now);
    FOR j IN SELECT * FROM held_v1(NULL, p_claimant, NULL) LOOP
        held := held + 1;
        v_at := (SELECT u.position FROM unnest(p_ids, p_fences) WITH ORDINALITY AS u (id, fence, position)
                 WHERE u.id = j.id AND u.fence = j.token ORDER BY u.position DESC LIMIT 1);
        IF v_at IS NULL THEN
            signals := signals || release_run_v1(j, v_now);
        ELSE
            signals := signals || lose_run_v1(j, p_verdicts[v_at], p_saids[v_at], v_now);
        END IF;
    END LOOP;
    PERFORM forget_claims_v1(p_claimant, NULL);
    signals := signals || (SELECT t.signals FROM update_dependents_v1(1000, v_now) AS t);
END $$;

-- Release the jobs that retirements had to leave because a transaction held them, once that transaction is over. Until
-- then their claimant is remembered.
CREATE FUNCTION release_left_behind_v1(p_limit integer, p_now bigint, OUT jobs integer, OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    j job;
    v_ids bytea[];
BEGIN
    jobs := 0;
    signals := '{}';
    v_ids := ARRAY(SELECT r.id FROM claimant AS c CROSS JOIN LATERAL running_v1(c.id) AS r
                   WHERE c.retired_at IS NOT NULL LIMIT p_limit);
    IF v_ids = '{}' THEN
        RETURN;
    END IF;
    UPDATE claimant SET retired_at = p_now
    WHERE id IN (SELECT claimant FROM job WHERE id = ANY (v_ids) AND state::integer = 3);
    FOR j IN SELECT l.* FROM unnest(lock_soon_v1(v_ids)) AS u (id) JOIN job AS l ON l.id = ANY (ARRAY[u.id])
             WHERE l.state::integer = 3 LOOP
        signals := signals || release_run_v1(j, p_now);
        jobs := jobs + 1;
    END LOOP;
END $$;

-- Release what members that are gone still hold. A member that is just heartbeating, claiming or leaving is
-- left to the next sweep.
CREATE FUNCTION reclaim_v1(p_sweeper bytea, p_limit integer, p_now bigint,
                           OUT entitled boolean, OUT jobs integer, OUT gone text[], OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    m member;
    j job;
    v_now bigint;
    v_jobs integer;
    v_more text[];
BEGIN
    jobs := 0;
    gone := '{}';
    signals := '{}';
    PERFORM pg_advisory_xact_lock(lock_v1('sweep', ''));  -- one sweeper after another
    v_now := coalesce(p_now, instant_v1());
    SELECT * INTO m FROM member WHERE id = p_sweeper;
    entitled := FOUND AND v_now - m.heartbeat_at <= 2 * m.heartbeat AND v_now - m.steady_since >= m.lease;
    IF NOT entitled THEN
        RETURN;
    END IF;
    FOR m IN SELECT * FROM member WHERE gone_at < v_now ORDER BY gone_at FOR UPDATE SKIP LOCKED LOOP
        CONTINUE WHEN NOT pg_try_advisory_xact_lock(lock_v1('member', encode(m.id, 'hex')));
        FOR j IN SELECT * FROM held_v1(m.id, NULL, p_limit - jobs) LOOP
            signals := signals || lose_run_v1(j, 'lost', NULL, v_now);
            jobs := jobs + 1;
        END LOOP;
        EXIT WHEN jobs >= p_limit;
        CONTINUE WHEN EXISTS (SELECT 1 FROM claimant AS c CROSS JOIN LATERAL running_v1(c.id) AS r
                              WHERE c.member = m.id);
        PERFORM retire_all_v1(m.id, v_now);
        DELETE FROM member WHERE id = m.id;
        gone := gone || m.name;
    END LOOP;
    IF jobs < p_limit THEN
        SELECT l.jobs, l.signals INTO v_jobs, v_more FROM release_left_behind_v1(p_limit - jobs, v_now) AS l;
        jobs := jobs + v_jobs;
        signals := signals || v_more;
    END IF;
    signals := signals || (SELECT t.signals FROM update_dependents_v1(1000, v_now) AS t);
END $$;
