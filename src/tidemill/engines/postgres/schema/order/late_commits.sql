-- Ready jobs below a claim's cursor: late commits, and what rolled-back claims had locked. Why they exist, and why these
-- functions find every one of them: see late_commits.py.

-- Mark ready jobs, so that every claim finds them. `held`: jobs that another transaction has locked. That may be a claim
-- that takes them, or one that is rolled back: the next scan requests them again.
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

-- Mark jobs below a process's cursors whose transactions were open at its last scan and have ended since. They may have drawn
-- their seqs long ago. A snapshot names the open transactions below its xmax, which is one more than the newest that has
-- ENDED. Transactions from there up to the last scan's own are searched as a range. The conditions are those of job_late: by
-- job_ready the planner walks everything that was ever ready (200 ms beside a snapshot held for 150,000 jobs).
--   p_cursors, p_lanes   as for claim_v1
--   p_snapshot, p_me     the snapshot and the own transaction of the last scan
--   p_held               jobs that were locked at the last scan
--   p_most               the most jobs that are marked, and the most that are remembered as locked. If there are `more`,
--                        snapshot and xid stay those of the last scan, and the next one finds the rest: a marked job is not
--                        found again.
-- `server`: when it was started. Another server has another value.
CREATE FUNCTION late_commits_v1(p_queues text[], p_cursors bigint[], p_lanes jsonb, p_snapshot text, p_me text, p_held bytea[],
                        p_most integer, OUT snapshot text, OUT me text, OUT server bigint, OUT held bytea[],
                        OUT more boolean, OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    v_me xid8 := pg_current_xact_id();  -- a transaction that drew a seq that a claim has passed is older
    v_now pg_snapshot := pg_current_snapshot();  -- before anything is read: what ends meanwhile is requested again
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
        v_lasts := v_lasts || p_me::xid8;  -- the last scan itself, which stored nothing
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

-- Mark ready jobs in ranges of lanes, from a seq to before another, which claims have passed. A range is scanned in spans of
-- seqs, because beside a held snapshot every entry that was ever ready is still there. After p_budget microseconds the scan
-- ends with its span. A range ends early at a span with more locked jobs than there is room for; the other ranges go on.
-- `reached`: how far each range was scanned. ORDER BY, as in every statement for which several indexes would do: without it
-- the planner took job_late, and walked all of it (8.9 s after five minutes).
CREATE FUNCTION scan_behind_v1(p_queues text[], p_priorities smallint[], p_lanes text[], p_froms bigint[], p_tos bigint[],
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

-- Once a lease: move jobs out of groups of a queue that has no groups any more, and announce the lane without a group. A
-- transaction stored them whose snapshot is older than that change (REPEATABLE READ).
CREATE FUNCTION move_strays_v1(p_queues text[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_signals text[] := '{}';
    v_left bytea[];
BEGIN
    FOR n IN 1 .. cardinality(p_queues) LOOP
        CONTINUE WHEN NOT EXISTS (SELECT 1 FROM queue WHERE name = p_queues[n] AND NOT shaped AND stale IS NULL);
        v_left := ARRAY(
            SELECT j.id FROM generate_series(0, 21) AS position
            CROSS JOIN LATERAL (
                SELECT id FROM job
                WHERE state = 2 AND queue = p_queues[n] AND priority = (position / 2)::smallint
                  AND suspect = (position % 2 = 1) AND lane > '' AND NOT aside
                ORDER BY lane, seq LIMIT 1000 FOR NO KEY UPDATE SKIP LOCKED
            ) AS j);
        IF v_left <> '{}' THEN
            UPDATE job SET lane = '', back = true WHERE id = ANY (v_left);
            INSERT INTO lane_new (queue, priority, suspect, lane, task, key, first)
            SELECT DISTINCT j.queue, j.priority, j.suspect, '', '', '', 9223372036854775807
            FROM unnest(v_left) AS u (id) JOIN job AS j ON j.id = ANY (ARRAY[u.id]) JOIN queue AS q ON q.name = j.queue
            WHERE q.laned;
            v_signals := v_signals || ('ready:' || p_queues[n]);
        END IF;
    END LOOP;
    RETURN v_signals;
END $$;
