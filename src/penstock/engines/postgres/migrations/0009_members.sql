-- oldest code: 1
-- Members, their beats, and what they leave behind; schedules and leases; looks behind the cursors.

-- Every claim up to p_answered was answered, so what runs of them is seen: raise `oldest`, and delete the marks of
-- claims before the last.
CREATE FUNCTION forget_claims_v1(p_claimant bytea, p_answered bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_from bigint;
    v_oldest bigint;
BEGIN
    SELECT oldest INTO v_from FROM claimant WHERE id = p_claimant;
    v_oldest := least(last_claim_v1(p_claimant), p_answered + 1, (
        SELECT j.claim_no FROM job AS j
        WHERE j.claimant = p_claimant AND j.claim_no >= v_from AND j.token IS NOT NULL
        ORDER BY j.claim_no LIMIT 1));
    IF v_oldest > v_from THEN
        UPDATE claimant SET oldest = v_oldest WHERE id = p_claimant;
        DELETE FROM claimed WHERE claimant = p_claimant AND number >= v_from AND number < v_oldest;
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
    v_oldest bigint;
    v_ids bytea[];
    v_tokens bigint[];
    v_numbers bigint[];
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
        SELECT oldest INTO v_oldest FROM claimant WHERE id = p_claimants[n];
        SELECT coalesce(array_agg(h.id), '{}'), coalesce(array_agg(h.token), '{}'), coalesce(array_agg(h.claim_no), '{}')
        INTO v_ids, v_tokens, v_numbers
        FROM job AS h WHERE h.claimant = p_claimants[n] AND h.claim_no >= v_oldest AND h.token IS NOT NULL;
        lost := lost || ARRAY(
            SELECT f FROM unnest(v_held) WITH ORDINALITY AS u (f, place) WHERE f <> ALL (v_tokens) ORDER BY place);
        FOR r IN SELECT h.id, h.token FROM unnest(v_ids, v_tokens, v_numbers) AS h (id, token, claim_no)
                 WHERE h.claim_no <= p_answered[n] AND h.token <> ALL (v_held) ORDER BY h.id LOOP
            -- by (id, token): a settle in flight wins or loses whole
            SELECT * INTO j FROM job WHERE id = r.id AND token IS NOT DISTINCT FROM r.token FOR NO KEY UPDATE;
            IF FOUND THEN
                signals := signals || give_back_v1(j, at);
            END IF;
        END LOOP;
    END LOOP;
    SELECT coalesce(array_agg(a.id ORDER BY a.fence), '{}'), coalesce(array_agg(a.fence ORDER BY a.fence), '{}')
    INTO asked_ids, asked_fences
    FROM claimant AS c JOIN job AS a ON a.claimant = c.id AND a.claim_no >= c.oldest AND a.token IS NOT NULL
    WHERE c.member = p_id AND a.cancel_asked;
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
        JOIN job AS j ON j.id = named.id WHERE j.state::integer = 3
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
            SELECT j.id FROM unnest(v_locked) AS u (id) JOIN job AS j ON j.id = u.id WHERE j.state::integer = 3
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
        v_ids := ARRAY(SELECT j.id FROM claimant AS c
                       JOIN job AS j ON j.claimant = c.id AND j.claim_no >= c.oldest AND j.token IS NOT NULL
                       WHERE c.id = p_claimant);
    ELSE
        v_ids := ARRAY(SELECT j.id FROM claimant AS c
                       JOIN job AS j ON j.claimant = c.id AND j.claim_no >= c.oldest AND j.token IS NOT NULL
                       WHERE c.member = p_member LIMIT p_limit);
    END IF;
    v_ids := lock_soon_v1(v_ids);
    RETURN QUERY
        SELECT j.* FROM unnest(v_ids) AS u (id) JOIN job AS j ON j.id = u.id
        WHERE j.state::integer = 3 AND (p_claimant IS NULL OR j.claimant = p_claimant)
          AND (p_member IS NULL OR EXISTS (SELECT 1 FROM claimant AS c WHERE c.id = j.claimant AND c.member = p_member));
END $$;

-- A member signs off: what it still holds goes back, nothing is counted as lost.
CREATE FUNCTION leave_v1(p_member bytea, p_now bigint, OUT released integer, OUT signals text[]) LANGUAGE plpgsql AS $$
DECLARE
    j job;
    v_now bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(lock_v1('member', encode(p_member, 'hex')));
    v_now := coalesce(p_now, instant_v1());
    released := 0;
    signals := '{}';
    FOR j IN SELECT * FROM held_v1(p_member, NULL, NULL) LOOP
        signals := signals || give_back_v1(j, v_now);
        released := released + 1;
    END LOOP;
    UPDATE claimant SET retired_at = v_now WHERE member = p_member AND retired_at IS NULL;
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
    v_ids := ARRAY(SELECT l.id FROM claimant AS c
                   JOIN job AS l ON l.claimant = c.id AND l.claim_no >= c.oldest AND l.token IS NOT NULL
                   WHERE c.retired_at IS NOT NULL LIMIT p_limit);
    IF v_ids = '{}' THEN
        RETURN;
    END IF;
    UPDATE claimant SET retired_at = p_now
    WHERE id IN (SELECT claimant FROM job WHERE id = ANY (v_ids) AND token IS NOT NULL);
    FOR j IN SELECT l.* FROM unnest(lock_soon_v1(v_ids)) AS u (id) JOIN job AS l ON l.id = u.id
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
        CONTINUE WHEN EXISTS (SELECT 1 FROM claimant AS c
                              JOIN job AS l ON l.claimant = c.id AND l.claim_no >= c.oldest AND l.token IS NOT NULL
                              WHERE c.member = m.id);
        UPDATE claimant SET retired_at = v_now WHERE member = m.id AND retired_at IS NULL;
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
    p_names text[], p_timings bytea[], p_jobs bytea[], p_missed text[], p_overlaps text[], p_sources text[],
    p_declared_ats bigint[], p_next_ats bigint[], p_by text, p_now bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    s schedule;
    v_changed text[] := '{}';
    v_differs boolean;
BEGIN
    FOR n IN 1 .. cardinality(p_names) LOOP
        INSERT INTO schedule (name, timing, job, missed, overlap, source, declared_at, next_at)
        VALUES (p_names[n], p_timings[n], p_jobs[n], p_missed[n], p_overlaps[n], p_sources[n], p_declared_ats[n],
                p_next_ats[n])
        ON CONFLICT (name) DO NOTHING;
        IF FOUND THEN
            v_changed := v_changed || p_names[n];
            CONTINUE;
        END IF;
        SELECT * INTO s FROM schedule WHERE name = p_names[n] FOR UPDATE;
        CONTINUE WHEN NOT FOUND  -- removed in this moment: as if that had come right after us
            OR (p_sources[n] <> '' AND p_declared_ats[n] < s.declared_at);  -- newer code has spoken
        v_differs := (s.timing, s.job, s.missed, s.overlap, s.source)
            IS DISTINCT FROM (p_timings[n], p_jobs[n], p_missed[n], p_overlaps[n], p_sources[n]);
        IF v_differs OR s.retired_at IS NOT NULL OR s.declared_at <> p_declared_ats[n] THEN
            UPDATE schedule SET timing = p_timings[n], job = p_jobs[n], missed = p_missed[n], overlap = p_overlaps[n],
                source = p_sources[n], declared_at = p_declared_ats[n], retired_at = NULL,
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
    p_name text, p_tick bigint, p_before bigint, p_next_at bigint, p_last_at bigint, p_asked boolean, p_by text,
    p_ids bytea[], p_tasks text[], p_queues text[], p_priorities smallint[], p_bodies bytea[], p_codecs smallint[],
    p_headers bytea[], p_keys text[], p_delays bigint[], p_ats bigint[], p_expires bigint[], p_timeouts bigint[],
    p_retries bytea[], p_attempts integer[], p_on_deads text[], p_schedules text[],
    p_children integer[], p_parents bytea[], p_parent_died text[], p_now bigint,
    OUT fired boolean, OUT signals text[]
) LANGUAGE plpgsql AS $$
BEGIN
    signals := '{}';
    UPDATE schedule SET next_at = p_next_at, last_at = coalesce(p_last_at, last_at)
    WHERE name = p_name AND next_at IS NOT DISTINCT FROM p_tick AND last_at IS NOT DISTINCT FROM p_before
        AND (p_asked OR NOT paused) AND retired_at IS NULL;
    fired := FOUND;
    IF fired THEN
        PERFORM audit_v1(p_by, 'run schedule', p_name, '', coalesce(p_now, instant_v1()));
    END IF;
    IF fired AND p_ids <> '{}' THEN
        SELECT e.signals INTO signals FROM enqueue_v1(
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

-- Rows behind a process's cursors that became visible since its last look: their transactions drew a seq early
-- and committed late. They are marked, so that every claim finds them. OFFSET 0: left alone the planner takes
-- job_ready and walks everything behind the cursor (16 ms with 200,000 rows).
CREATE FUNCTION late_v1(p_queues text[], p_cursors bigint[], p_lanes jsonb, p_snapshot text,
                        OUT snapshot text, OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    v_snapshot pg_snapshot := p_snapshot::pg_snapshot;
    v_running xid8[] := ARRAY(SELECT pg_snapshot_xip(p_snapshot::pg_snapshot));
    v_late bytea[];
BEGIN
    snapshot := pg_current_snapshot()::text;
    signals := '{}';
    FOR n IN 1 .. cardinality(p_queues) LOOP
        v_late := ARRAY(
            SELECT s.id FROM (
                SELECT id, seq, priority, suspect, lane FROM job
                WHERE state = 2 AND queue = p_queues[n] AND NOT back AND xid >= pg_snapshot_xmax(v_snapshot)
                UNION ALL
                SELECT id, seq, priority, suspect, lane FROM job
                WHERE state = 2 AND queue = p_queues[n] AND NOT back AND xid = ANY (v_running)
                OFFSET 0
            ) AS s
            WHERE s.seq < CASE WHEN s.lane = '' THEN p_cursors[22 * n - 21 + 2 * s.priority + s.suspect::integer]
                ELSE (p_lanes -> (n - 1) ->> (s.priority || ':' || s.lane))::bigint END);
        IF v_late <> '{}' THEN
            UPDATE job SET back = true WHERE id = ANY (v_late) AND state::integer = 2;
            signals := signals || ('ready:' || p_queues[n]);
        END IF;
    END LOOP;
END $$;

-- Once a lease: ready rows behind the cursors, which a claim that was rolled back had locked while others passed; and rows
-- in groups of a queue that has none any more, stored by a transaction whose snapshot is older than that change (REPEATABLE
-- READ). The lane without a group is read whatever the shape.
CREATE FUNCTION behind_v1(p_queues text[], p_cursors bigint[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_signals text[] := '{}';
    v_left bytea[];
BEGIN
    FOR n IN 1 .. cardinality(p_queues) LOOP
        v_left := ARRAY(
            SELECT j.id FROM unnest(p_cursors[22 * n - 21 : 22 * n]) WITH ORDINALITY AS c (seq, place)
            CROSS JOIN LATERAL (
                SELECT id FROM job
                WHERE state = 2 AND queue = p_queues[n] AND priority = ((c.place - 1) / 2)::smallint
                  AND suspect = (c.place % 2 = 0) AND lane = '' AND seq < c.seq AND NOT back
                LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED
            ) AS j WHERE c.seq > 0);
        IF v_left <> '{}' THEN
            UPDATE job SET back = true WHERE id = ANY (v_left);
            v_signals := v_signals || ('ready:' || p_queues[n]);
        END IF;
        IF EXISTS (SELECT 1 FROM queue WHERE name = p_queues[n] AND NOT shaped AND stale IS NULL) THEN
            v_left := ARRAY(
                SELECT j.id FROM generate_series(0, 21) AS place
                CROSS JOIN LATERAL (
                    SELECT id FROM job
                    WHERE state = 2 AND queue = p_queues[n] AND priority = (place / 2)::smallint
                      AND suspect = (place % 2 = 1) AND lane > ''
                    LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED
                ) AS j);
            IF v_left <> '{}' THEN
                UPDATE job SET lane = '', back = true WHERE id = ANY (v_left);
                v_signals := v_signals || ('ready:' || p_queues[n]);
            END IF;
        END IF;
    END LOOP;
    RETURN v_signals;
END $$;
