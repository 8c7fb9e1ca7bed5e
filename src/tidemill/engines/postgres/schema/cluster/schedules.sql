-- Schedules (decision 0014).

-- Add or replace schedules. Bytes are compared, so the same record has to be encoded the same way every time.
CREATE FUNCTION put_schedules_v1(
    p_names text[], p_timings bytea[], p_jobs bytea[], p_missed text[], p_overlaps text[], p_waitings bigint[],
    p_keeps bigint[], p_sources text[],
    p_declared_ats bigint[], p_next_ats bigint[], p_by text, p_now bigint
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    s schedule;
    v_changed text[] := '{}';
    v_differs boolean;
BEGIN
    FOR n IN 1 .. cardinality(p_names) LOOP
        -- the version begins with the time, so that no schedule of this name has had it before
        INSERT INTO schedule (name, timing, job, missed, overlap, waiting, keep, source, declared_at, next_at, version)
        VALUES (p_names[n], p_timings[n], p_jobs[n], p_missed[n], p_overlaps[n], p_waitings[n], p_keeps[n],
                p_sources[n], p_declared_ats[n], p_next_ats[n], coalesce(p_now, instant_v1()))
        ON CONFLICT (name) DO NOTHING;
        IF FOUND THEN
            v_changed := v_changed || p_names[n];
            CONTINUE;
        END IF;
        SELECT * INTO s FROM schedule WHERE name = p_names[n] FOR UPDATE;
        CONTINUE WHEN NOT FOUND  -- removed in this moment: as if that had come right after us
            OR (p_sources[n] <> '' AND p_declared_ats[n] < s.declared_at);  -- newer code has spoken
        v_differs := (s.timing, s.job, s.missed, s.overlap, s.waiting, s.keep, s.source)
            IS DISTINCT FROM (p_timings[n], p_jobs[n], p_missed[n], p_overlaps[n], p_waitings[n], p_keeps[n],
                              p_sources[n]);
        IF v_differs OR s.retired_at IS NOT NULL OR s.declared_at <> p_declared_ats[n] THEN
            UPDATE schedule SET timing = p_timings[n], job = p_jobs[n], missed = p_missed[n], overlap = p_overlaps[n],
                waiting = p_waitings[n], keep = p_keeps[n], source = p_sources[n], declared_at = p_declared_ats[n],
                retired_at = NULL,
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

-- p_sets: p_next_at is to be set, NULL too, unless the version is another one.
CREATE FUNCTION pause_schedule_v1(
    p_name text, p_paused boolean, p_sets boolean, p_next_at bigint, p_version bigint, p_by text, p_now bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE schedule SET paused = p_paused,
        next_at = CASE WHEN p_sets AND version = coalesce(p_version, version) THEN p_next_at ELSE next_at END
    WHERE name = p_name AND paused <> p_paused;
    IF FOUND THEN
        PERFORM audit_v1(p_by, CASE WHEN p_paused THEN 'pause schedule' ELSE 'resume schedule' END, p_name, '',
                         coalesce(p_now, instant_v1()));
        RETURN true;
    END IF;
    RETURN EXISTS (SELECT 1 FROM schedule WHERE name = p_name);
END $$;

CREATE FUNCTION retire_schedule_v1(
    p_name text, p_retired boolean, p_sets boolean, p_next_at bigint, p_version bigint, p_by text, p_now bigint
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_now bigint := coalesce(p_now, instant_v1());
BEGIN
    UPDATE schedule SET retired_at = CASE WHEN p_retired THEN v_now END,
        next_at = CASE WHEN p_sets AND version = coalesce(p_version, version) THEN p_next_at ELSE next_at END
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

-- Fire a schedule: advance it and store its jobs in one step. The row lock makes a second call wait, and then find another
-- next_at or last_at. p_requested: a caller requests a run now; a pause does not refuse it.
CREATE FUNCTION fire_v1(
    p_name text, p_tick bigint, p_before bigint, p_next_at bigint, p_last_at bigint, p_line bytea, p_kept bytea,
    p_version bigint, p_requested boolean, p_by text,
    p_ids bytea[], p_tasks text[], p_queues text[], p_priorities smallint[], p_bodies bytea[], p_codecs smallint[],
    p_headers bytea[], p_keys text[], p_delays bigint[], p_ats bigint[], p_expires bigint[], p_timeouts bigint[],
    p_retries bytea[], p_attempts integer[], p_on_deads text[], p_schedules text[],
    p_children integer[], p_parents bytea[], p_parent_died text[], p_uniques text, p_now bigint,
    OUT fired boolean, OUT met bytea[], OUT created boolean[], OUT signals text[]
) LANGUAGE plpgsql AS $$
BEGIN
    created := '{}';
    signals := '{}';
    UPDATE schedule SET next_at = p_next_at, last_at = coalesce(p_last_at, last_at),
        line = CASE WHEN p_last_at IS NULL THEN line ELSE p_line END,
        kept = CASE WHEN p_last_at IS NULL THEN kept ELSE p_kept END
    WHERE name = p_name AND next_at IS NOT DISTINCT FROM p_tick AND last_at IS NOT DISTINCT FROM p_before
        AND (p_requested OR NOT paused) AND retired_at IS NULL AND version = coalesce(p_version, version);
    fired := FOUND;
    IF fired THEN
        PERFORM audit_v1(p_by, 'run schedule', p_name, '', coalesce(p_now, instant_v1()));
    END IF;
    IF fired AND p_uniques IS NOT NULL THEN
        SELECT e.met, e.created, e.signals INTO met, created, signals FROM enqueue_unique_v1(
            p_ids, p_tasks, p_queues, p_priorities, p_bodies, p_codecs, p_headers, p_keys, p_delays, p_ats, p_expires,
            p_timeouts, p_retries, p_attempts, p_on_deads, p_schedules, p_children, p_parents, p_parent_died, p_uniques,
            false, p_now) AS e;
    ELSIF fired AND p_ids <> '{}' THEN
        SELECT e.created, e.signals INTO created, signals FROM enqueue_v1(
            p_ids, p_tasks, p_queues, p_priorities, p_bodies, p_codecs, p_headers, p_keys, p_delays, p_ats, p_expires,
            p_timeouts, p_retries, p_attempts, p_on_deads, p_schedules, p_children, p_parents, p_parent_died, p_now) AS e;
    END IF;
END $$;
