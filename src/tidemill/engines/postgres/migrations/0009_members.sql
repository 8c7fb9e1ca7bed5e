-- oldest code: 1
-- Members, their beats, and what they leave behind; schedules and leases; looks behind the cursors.

-- What runs of a claimant's claims. By their marks, claim by claim: beside a held snapshot the index of running jobs has an
-- entry for everything that was ever claimed, and one job that runs for long would have all of them walked that came after
-- it. OFFSET 0 keeps that order. (Joined with the claimant, the marks were all walked in a plan that was made while each
-- had one: 50 ms a beat beside 100,000 that are deleted.)
CREATE FUNCTION running_v1(p_claimant bytea)
RETURNS TABLE (id bytea, token bigint, claim_no bigint, cancel_asked boolean) LANGUAGE sql STABLE AS $$
    SELECT h.id, h.token, h.claim_no, h.cancel_asked
    FROM (
        SELECT m.number FROM claimed AS m WHERE m.claimant = p_claimant
          AND m.number >= (SELECT c.oldest FROM claimant AS c WHERE c.id = p_claimant) OFFSET 0
    ) AS marks
    CROSS JOIN LATERAL (
        SELECT j.id, j.token, j.claim_no, j.cancel_asked FROM job AS j
        WHERE j.claimant = p_claimant AND j.claim_no = marks.number AND j.token IS NOT NULL OFFSET 0
    ) AS h
$$;

-- Delete the marks of claims of which nothing runs. Those up to p_answered were answered, so what they took is seen; the
-- last one may be repeated. NULL: the claimant is retired, and will not ask again. (Sweeps look through the marks of all
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

-- A member lives, and says what its children hold. p_held_of: for each held fence the place of its claimant.
CREATE FUNCTION beat_v1(
    p_id bytea, p_name text, p_info bytea, p_beat bigint, p_lease bigint, p_claimants bytea[], p_answered bigint[],
    p_held_of integer[], p_held bigint[], p_now bigint,
    OUT number bigint, OUT at bigint, OUT new boolean, OUT lost bigint[], OUT asked_ids bytea[],
    OUT asked_fences bigint[], OUT signals text[]
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
        INSERT INTO member (id, name, info, beat, lease, since, beat_at, steady_since, gone_at)
        VALUES (p_id, p_name, p_info, p_beat, p_lease, at, at, at, at + p_lease)
        ON CONFLICT (id) DO UPDATE SET beat_at = excluded.beat_at, gone_at = excluded.gone_at;
    ELSE
        UPDATE member SET name = p_name, info = p_info, beat = p_beat, lease = p_lease, beat_at = at,
            steady_since = CASE WHEN at - m.beat_at > 2 * p_beat THEN at ELSE m.steady_since END, gone_at = at + p_lease
        WHERE id = p_id;
    END IF;
    number := nextval('beat');
    FOR n IN 1 .. cardinality(p_claimants) LOOP
        v_held := ARRAY(SELECT f FROM unnest(p_held_of, p_held) WITH ORDINALITY AS u (c, f, place)
                        WHERE c = n ORDER BY place);
        SELECT coalesce(array_agg(h.id), '{}'), coalesce(array_agg(h.token), '{}'), coalesce(array_agg(h.claim_no), '{}')
        INTO v_ids, v_tokens, v_numbers FROM running_v1(p_claimants[n]) AS h;
        -- EXCEPT hashes: `<> ALL` compares each with each (0.7 s for 5,800 held and 300 running)
        v_astray := ARRAY(SELECT unnest(v_held) EXCEPT SELECT unnest(v_tokens));
        lost := lost || ARRAY(SELECT f FROM unnest(v_astray) AS f ORDER BY array_position(v_held, f));
        v_astray := ARRAY(SELECT unnest(v_tokens) EXCEPT SELECT unnest(v_held));
        FOR r IN SELECT h.id, h.token FROM unnest(v_ids, v_tokens, v_numbers) AS h (id, token, claim_no)
                 WHERE h.claim_no <= p_answered[n] AND h.token = ANY (v_astray) ORDER BY h.id LOOP
            -- By (id, token): a settle in flight wins or loses whole. One that is locked is left to the next beat: a
            -- user's transaction that completes it may stay open for longer than a beat may take.
            SELECT * INTO j FROM job WHERE id = r.id AND token IS NOT DISTINCT FROM r.token
            FOR NO KEY UPDATE SKIP LOCKED;
            IF FOUND THEN
                signals := signals || give_back_v1(j, at);
            END IF;
        END LOOP;
    END LOOP;
    SELECT coalesce(array_agg(a.id ORDER BY a.token), '{}'), coalesce(array_agg(a.token ORDER BY a.token), '{}')
    INTO asked_ids, asked_fences
    FROM claimant AS c CROSS JOIN LATERAL running_v1(c.id) AS a WHERE c.member = p_id AND a.cancel_asked;
    -- after what was given back, which runs no more
    FOR n IN 1 .. cardinality(p_claimants) LOOP
        PERFORM forget_claims_v1(p_claimants[n], p_answered[n]);
    END LOOP;
    IF signals <> '{}' THEN
        signals := signals || (SELECT t.signals FROM tell_v1(1000, at) AS t);
    END IF;
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
          AND (p_member IS NULL OR EXISTS (SELECT 1 FROM claimant AS c WHERE c.id = j.claimant AND c.member = p_member));
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
    PERFORM 1 FROM member WHERE id = p_member FOR UPDATE;  -- before its claimants, as a beat does
    v_now := coalesce(p_now, instant_v1());
    released := 0;
    signals := '{}';
    FOR j IN SELECT * FROM held_v1(p_member, NULL, NULL) LOOP
        signals := signals || give_back_v1(j, v_now);
        released := released + 1;
    END LOOP;
    PERFORM retire_all_v1(p_member, v_now);
    DELETE FROM member WHERE id = p_member;
    signals := signals || (SELECT t.signals FROM tell_v1(1000, v_now) AS t);
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
        v_at := (SELECT u.place FROM unnest(p_ids, p_fences) WITH ORDINALITY AS u (id, fence, place)
                 WHERE u.id = j.id AND u.fence = j.token ORDER BY u.place DESC LIMIT 1);
        IF v_at IS NULL THEN
            signals := signals || give_back_v1(j, v_now);
        ELSE
            signals := signals || lose_v1(j, p_verdicts[v_at], p_saids[v_at], v_now);
        END IF;
    END LOOP;
    PERFORM forget_claims_v1(p_claimant, NULL);
    signals := signals || (SELECT t.signals FROM tell_v1(1000, v_now) AS t);
END $$;

-- What retirements had to leave, because a transaction held it: given back once that is over. Until then its
-- claimant is remembered.
CREATE FUNCTION left_behind_v1(p_limit integer, p_now bigint, OUT jobs integer, OUT signals text[])
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
        signals := signals || give_back_v1(j, p_now);
        jobs := jobs + 1;
    END LOOP;
END $$;

-- Give back what members that are gone still hold. A member that is just beating, claiming or leaving is
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
    entitled := FOUND AND v_now - m.beat_at <= 2 * m.beat AND v_now - m.steady_since >= m.lease;
    IF NOT entitled THEN
        RETURN;
    END IF;
    FOR m IN SELECT * FROM member WHERE gone_at < v_now ORDER BY gone_at FOR UPDATE SKIP LOCKED LOOP
        CONTINUE WHEN NOT pg_try_advisory_xact_lock(lock_v1('member', encode(m.id, 'hex')));
        FOR j IN SELECT * FROM held_v1(m.id, NULL, p_limit - jobs) LOOP
            signals := signals || lose_v1(j, 'lost', NULL, v_now);
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
        SELECT l.jobs, l.signals INTO v_jobs, v_more FROM left_behind_v1(p_limit - jobs, v_now) AS l;
        jobs := jobs + v_jobs;
        signals := signals || v_more;
    END IF;
    signals := signals || (SELECT t.signals FROM tell_v1(1000, v_now) AS t);
END $$;

-- Add or replace schedules. Bytes are compared, so the same record has to be encoded the same way every time.
CREATE FUNCTION put_schedules_v1(
    p_names text[], p_timings bytea[], p_jobs bytea[], p_missed text[], p_overlaps text[], p_waitings bigint[],
    p_sources text[],
    p_declared_ats bigint[], p_next_ats bigint[], p_by text, p_now bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    s schedule;
    v_changed text[] := '{}';
    v_differs boolean;
BEGIN
    FOR n IN 1 .. cardinality(p_names) LOOP
        INSERT INTO schedule (name, timing, job, missed, overlap, waiting, source, declared_at, next_at)
        VALUES (p_names[n], p_timings[n], p_jobs[n], p_missed[n], p_overlaps[n], p_waitings[n], p_sources[n],
                p_declared_ats[n], p_next_ats[n])
        ON CONFLICT (name) DO NOTHING;
        IF FOUND THEN
            v_changed := v_changed || p_names[n];
            CONTINUE;
        END IF;
        SELECT * INTO s FROM schedule WHERE name = p_names[n] FOR UPDATE;
        CONTINUE WHEN NOT FOUND  -- removed in this moment: as if that had come right after us
            OR (p_sources[n] <> '' AND p_declared_ats[n] < s.declared_at);  -- newer code has spoken
        v_differs := (s.timing, s.job, s.missed, s.overlap, s.waiting, s.source)
            IS DISTINCT FROM (p_timings[n], p_jobs[n], p_missed[n], p_overlaps[n], p_waitings[n], p_sources[n]);
        IF v_differs OR s.retired_at IS NOT NULL OR s.declared_at <> p_declared_ats[n] THEN
            UPDATE schedule SET timing = p_timings[n], job = p_jobs[n], missed = p_missed[n], overlap = p_overlaps[n],
                waiting = p_waitings[n], source = p_sources[n], declared_at = p_declared_ats[n], retired_at = NULL,
                next_at = CASE WHEN s.timing = p_timings[n] AND s.retired_at IS NULL THEN s.next_at
                               ELSE p_next_ats[n] END,
                version = s.version + v_differs::integer
            WHERE name = p_names[n];
        END IF;
        IF v_differs OR s.retired_at IS NOT NULL THEN
            v_changed := v_changed || p_names[n];
        END IF;
    END LOOP;
    IF v_changed <> '{}' THEN
        PERFORM audit_v1(p_by, 'put schedule', array_to_string(v_changed, ', '), '', coalesce(p_now, instant_v1()));
    END IF;
END $$;

-- p_sets: p_next_at is to be set, NULL too.
CREATE FUNCTION pause_schedule_v1(
    p_name text, p_paused boolean, p_sets boolean, p_next_at bigint, p_by text, p_now bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE schedule SET paused = p_paused, next_at = CASE WHEN p_sets THEN p_next_at ELSE next_at END
    WHERE name = p_name AND paused <> p_paused;
    IF FOUND THEN
        PERFORM audit_v1(p_by, CASE WHEN p_paused THEN 'pause schedule' ELSE 'resume schedule' END, p_name, '',
                         coalesce(p_now, instant_v1()));
        RETURN true;
    END IF;
    RETURN EXISTS (SELECT 1 FROM schedule WHERE name = p_name);
END $$;

CREATE FUNCTION retire_schedule_v1(
    p_name text, p_retired boolean, p_sets boolean, p_next_at bigint, p_by text, p_now bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint := coalesce(p_now, instant_v1());
BEGIN
    UPDATE schedule SET retired_at = CASE WHEN p_retired THEN v_now END,
        next_at = CASE WHEN p_sets THEN p_next_at ELSE next_at END
    WHERE name = p_name AND (retired_at IS NOT NULL) <> p_retired;
    IF FOUND THEN
        PERFORM audit_v1(p_by, CASE WHEN p_retired THEN 'retire schedule' ELSE 'bring back schedule' END, p_name, '',
                         v_now);
        RETURN true;
    END IF;
    RETURN EXISTS (SELECT 1 FROM schedule WHERE name = p_name);
END $$;

CREATE FUNCTION remove_schedule_v1(p_name text, p_by text, p_now bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM schedule WHERE name = p_name;
    IF FOUND THEN
        PERFORM audit_v1(p_by, 'remove schedule', p_name, '', coalesce(p_now, instant_v1()));
        RETURN true;
    END IF;
    RETURN false;
END $$;

-- Advance and insert in one step. The row lock makes a second one wait and find another next_at or last_at. Who asks
-- for a run is not refused by a pause.
CREATE FUNCTION fire_v1(
    p_name text, p_tick bigint, p_before bigint, p_next_at bigint, p_last_at bigint, p_line bytea, p_asked boolean,
    p_by text,
    p_ids bytea[], p_tasks text[], p_queues text[], p_priorities smallint[], p_bodies bytea[], p_codecs smallint[],
    p_headers bytea[], p_keys text[], p_delays bigint[], p_ats bigint[], p_expires bigint[], p_timeouts bigint[],
    p_retries bytea[], p_attempts integer[], p_on_deads text[], p_schedules text[],
    p_children integer[], p_parents bytea[], p_parent_died text[], p_now bigint,
    OUT fired boolean, OUT created boolean[], OUT signals text[]
) LANGUAGE plpgsql AS $$
BEGIN
    created := '{}';
    signals := '{}';
    UPDATE schedule SET next_at = p_next_at, last_at = coalesce(p_last_at, last_at),
        line = CASE WHEN p_last_at IS NULL THEN line ELSE p_line END
    WHERE name = p_name AND next_at IS NOT DISTINCT FROM p_tick AND last_at IS NOT DISTINCT FROM p_before
        AND (p_asked OR NOT paused) AND retired_at IS NULL;
    fired := FOUND;
    IF fired THEN
        PERFORM audit_v1(p_by, 'run schedule', p_name, '', coalesce(p_now, instant_v1()));
    END IF;
    IF fired AND p_ids <> '{}' THEN
        SELECT e.created, e.signals INTO created, signals FROM enqueue_v1(
            p_ids, p_tasks, p_queues, p_priorities, p_bodies, p_codecs, p_headers, p_keys, p_delays, p_ats, p_expires,
            p_timeouts, p_retries, p_attempts, p_on_deads, p_schedules, p_children, p_parents, p_parent_died, p_now) AS e;
    END IF;
END $$;

-- The lease's fence and its end; no row: another holds it.
CREATE FUNCTION acquire_v1(p_name text, p_holder text, p_ttl bigint, p_now bigint)
RETURNS TABLE (fence bigint, expires_at bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_fence bigint := (fences_v1(1))[1];
    v_now bigint := coalesce(p_now, instant_v1());
BEGIN
    RETURN QUERY
        INSERT INTO lease AS l (name, holder, fence, expires_at) VALUES (p_name, p_holder, v_fence, v_now + p_ttl)
        ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at,
            fence = CASE WHEN l.expires_at > v_now THEN l.fence ELSE excluded.fence END
        WHERE l.holder = p_holder OR l.expires_at <= v_now
        RETURNING l.fence, l.expires_at;
END $$;

-- Looks behind the cursors: see engines/postgres/looks.py.

-- Mark ready jobs, so that every claim finds them. `held`: those that somebody else has locked, which may be a claim that
-- takes them or one that is rolled back: whoever looks asks again.
CREATE FUNCTION mark_back_v1(p_ids bytea[], OUT marked bytea[], OUT held bytea[]) LANGUAGE plpgsql AS $$
BEGIN
    marked := ARRAY(
        SELECT j.id FROM unnest(p_ids) AS u (id) JOIN job AS j ON j.id = ANY (ARRAY[u.id])
        WHERE j.state::integer = 2 AND NOT j.back
        FOR NO KEY UPDATE OF j SKIP LOCKED);
    UPDATE job SET back = true WHERE id = ANY (marked);
    held := ARRAY(
        SELECT j.id FROM unnest(p_ids) AS u (id) JOIN job AS j ON j.id = ANY (ARRAY[u.id])
        WHERE j.state::integer = 2 AND NOT j.back);
END $$;

CREATE FUNCTION ready_signals_v1(p_ids bytea[]) RETURNS text[] LANGUAGE sql STABLE AS $$
    SELECT coalesce(array_agg(DISTINCT 'ready:' || j.queue), '{}')
    FROM unnest(p_ids) AS u (id) JOIN job AS j ON j.id = ANY (ARRAY[u.id])
$$;

-- Rows behind a process's cursors whose transactions ran at its last look and have ended since: they may have drawn their
-- seq long ago. A snapshot names those that run below its xmax, which is one more than the newest that has ENDED; those from
-- there up to the look's own transaction are looked through as a range. The conditions are those of job_late: by job_ready
-- the planner walks everything that was ever ready (200 ms beside a snapshot held for 150,000 jobs).
--   p_cursors, p_lanes   as for claim_v1
--   p_snapshot, p_me     of the last look
--   p_held               what was locked at the last look
--   p_most               so many jobs are marked, and so many kept in mind as locked. If there are `more`, snapshot and xid
--                        stay those of the last look, and the next one finds the rest: what is marked is not found again.
-- `server`: another one, or one that was started anew, has another.
CREATE FUNCTION late_v1(p_queues text[], p_cursors bigint[], p_lanes jsonb, p_snapshot text, p_me text, p_held bytea[],
                        p_most integer, OUT snapshot text, OUT me text, OUT server bigint, OUT held bytea[],
                        OUT more boolean, OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    v_me xid8 := pg_current_xact_id();  -- whoever has drawn a seq that a claim has passed is older
    v_now pg_snapshot := pg_current_snapshot();  -- before anything is read: what ends meanwhile is looked at again
    v_firsts xid8[] := ARRAY(SELECT x FROM pg_snapshot_xip(p_snapshot::pg_snapshot) AS x
                             WHERE pg_visible_in_snapshot(x, v_now));
    v_lasts xid8[] := v_firsts;
    v_late bytea[] := '{}';
    v_marked bytea[];
    v_late_marked bytea[];
    v_late_held bytea[];
BEGIN
    IF pg_snapshot_xmax(p_snapshot::pg_snapshot) < p_me::xid8 THEN
        v_firsts := v_firsts || pg_snapshot_xmax(p_snapshot::pg_snapshot);
        v_lasts := v_lasts || p_me::xid8;  -- that look itself, which has stored nothing
    END IF;
    server := (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint;
    signals := '{}';
    IF v_firsts <> '{}' THEN
        FOR n IN 1 .. cardinality(p_queues) LOOP
            v_late := v_late || ARRAY(
                SELECT s.id FROM unnest(v_firsts, v_lasts) AS e (first, last)
                CROSS JOIN LATERAL (
                    SELECT id, seq, priority, suspect, lane FROM job
                    WHERE state::integer = 2 AND queue = p_queues[n] AND xid >= e.first AND xid <= e.last AND NOT back
                    ORDER BY xid OFFSET 0
                ) AS s
                WHERE s.seq < CASE WHEN s.lane = '' THEN p_cursors[22 * n - 21 + 2 * s.priority + s.suspect::integer]
                    ELSE (p_lanes -> (n - 1) ->> (s.priority || ':' || s.lane))::bigint END
                LIMIT p_most - cardinality(v_late));
        END LOOP;
    END IF;
    SELECT m.marked, m.held INTO v_marked, held FROM mark_back_v1(p_held) AS m;
    SELECT m.marked, m.held INTO v_late_marked, v_late_held FROM mark_back_v1(v_late) AS m;
    v_late_held := held || ARRAY(SELECT unnest(v_late_held) EXCEPT SELECT unnest(held));
    more := cardinality(v_late) >= p_most OR cardinality(v_late_held) > greatest(p_most, cardinality(held));
    IF more THEN
        snapshot := p_snapshot;
        me := p_me;
    ELSE
        snapshot := v_now::text;
        me := v_me::text;
        held := v_late_held;
    END IF;
    IF v_marked <> '{}' OR v_late_marked <> '{}' THEN
        signals := ready_signals_v1(v_marked || v_late_marked);
    END IF;
END $$;

-- Ready rows in stretches of lanes, from a seq to before another, which claims have passed. A stretch is walked in spans of
-- seqs, because beside a held snapshot every entry that was ever ready is still there. After p_budget microseconds it ends
-- with the span. A stretch ends before a span with more locked rows than there is room for: the others go on. `reached` says
-- where, in each stretch. ORDER BY, as everywhere where several indexes would do: without it the planner took job_late, and
-- walked all of it (8.9 s after five minutes).
CREATE FUNCTION behind_v1(p_queues text[], p_priorities smallint[], p_lanes text[], p_froms bigint[], p_tos bigint[],
                          p_budget bigint, p_room integer, OUT reached bigint[], OUT held bytea[], OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    v_deadline timestamptz := clock_timestamp() + p_budget * interval '1 microsecond';
    v_begun timestamptz;
    v_over boolean := false;
    v_span bigint := 2000;
    v_to bigint;
    v_last bigint;
    v_ids bytea[];
    v_marked bytea[];
    v_held bytea[];
BEGIN
    reached := p_froms;
    held := '{}';
    signals := '{}';
    FOR n IN 1 .. cardinality(p_froms) LOOP
        WHILE NOT v_over AND reached[n] < p_tos[n] LOOP
            v_begun := clock_timestamp();
            v_to := least(p_tos[n], reached[n] + v_span);
            SELECT coalesce(array_agg(s.id), '{}'), max(s.seq) INTO v_ids, v_last FROM (
                SELECT id, seq FROM job
                WHERE state = 2 AND queue = p_queues[n] AND priority = p_priorities[n] AND NOT suspect
                  AND lane = p_lanes[n] AND seq >= reached[n] AND seq < v_to AND NOT back
                ORDER BY seq LIMIT 1000
            ) AS s;
            IF v_ids <> '{}' THEN
                SELECT m.marked, m.held INTO v_marked, v_held FROM mark_back_v1(v_ids) AS m;
                IF v_marked <> '{}' THEN
                    signals := signals || ('ready:' || p_queues[n]);
                END IF;
                v_over := clock_timestamp() >= v_deadline;
                EXIT WHEN v_held <> '{}' AND cardinality(held) + cardinality(v_held) > p_room;
                held := held || v_held;
            END IF;
            reached[n] := CASE WHEN cardinality(v_ids) < 1000 THEN v_to ELSE v_last + 1 END;
            v_span := CASE WHEN clock_timestamp() - v_begun < interval '2 ms' THEN least(2 * v_span, 50000)
                           ELSE greatest(v_span / 2, 2000) END;
            v_over := clock_timestamp() >= v_deadline;
        END LOOP;
        EXIT WHEN v_over;
    END LOOP;
END $$;

-- Once a lease: rows in groups of a queue that has none any more, stored by a transaction whose snapshot is older than that
-- change (REPEATABLE READ). The lane without a group is read whatever the shape.
CREATE FUNCTION astray_v1(p_queues text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_signals text[] := '{}';
    v_left bytea[];
BEGIN
    FOR n IN 1 .. cardinality(p_queues) LOOP
        CONTINUE WHEN NOT EXISTS (SELECT 1 FROM queue WHERE name = p_queues[n] AND NOT shaped AND stale IS NULL);
        v_left := ARRAY(
            SELECT j.id FROM generate_series(0, 21) AS place
            CROSS JOIN LATERAL (
                SELECT id FROM job
                WHERE state = 2 AND queue = p_queues[n] AND priority = (place / 2)::smallint
                  AND suspect = (place % 2 = 1) AND lane > ''
                ORDER BY lane, seq LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED
            ) AS j);
        IF v_left <> '{}' THEN
            UPDATE job SET lane = '', back = true WHERE id = ANY (v_left);
            v_signals := v_signals || ('ready:' || p_queues[n]);
        END IF;
    END LOOP;
    RETURN v_signals;
END $$;
