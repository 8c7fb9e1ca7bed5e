-- The choice of a claim in a queue without groups and limits: each priority is one lane, the plain lane.

-- Rows of a plain lane between two seqs: those that were released below the cursor, then those from it on.
-- Locked as they are read: none that is not taken, because another claim's cursor passes a locked row.
CREATE FUNCTION plain_lane_jobs_v1(
    p_queue text, p_priority smallint, p_after bigint, p_before bigint, p_cursor bigint, p_most integer,
    p_taken tid[], p_now bigint
) RETURNS SETOF tid LANGUAGE plpgsql AS $$
DECLARE
    v_found integer;
BEGIN
    RETURN QUERY
        SELECT ctid FROM job
        WHERE back AND queue = p_queue AND priority = p_priority AND NOT suspect AND lane = ''
          AND seq > p_after AND seq < least(p_before, p_cursor) AND (expires_at IS NULL OR expires_at > p_now)
          AND ctid <> ALL (p_taken)
        ORDER BY seq LIMIT p_most FOR NO KEY UPDATE SKIP LOCKED;
    GET DIAGNOSTICS v_found = ROW_COUNT;
    IF v_found < p_most THEN
        RETURN QUERY
            SELECT ctid FROM job
            WHERE state = 2 AND queue = p_queue AND priority = p_priority AND NOT suspect AND lane = ''
              AND seq > p_after AND seq < p_before AND seq >= p_cursor AND (expires_at IS NULL OR expires_at > p_now)
              AND ctid <> ALL (p_taken)
            ORDER BY seq LIMIT p_most - v_found FOR NO KEY UPDATE SKIP LOCKED;
    END IF;
END $$;

-- Choose and lock up to p_most jobs of a queue's plain lanes, from their cursors on.
CREATE FUNCTION choose_from_cursors_v1(p_queue text, p_most integer, p_cursors bigint[], p_taken tid[], p_now bigint)
RETURNS tid[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT j.at FROM unnest(p_cursors) WITH ORDINALITY AS c (seq, position)
        CROSS JOIN LATERAL (
            SELECT ctid AS at FROM job
            WHERE state = 2 AND queue = p_queue AND priority = ((c.position - 1) / 2)::smallint AND NOT suspect
              AND lane = '' AND seq >= c.seq AND (expires_at IS NULL OR expires_at > p_now)
              AND ctid <> ALL (p_taken)
            ORDER BY seq LIMIT p_most FOR NO KEY UPDATE SKIP LOCKED
        ) AS j
        WHERE c.position % 2 = 1
        LIMIT p_most);
END $$;

-- Choose and lock up to p_most jobs of a queue without limits and groups. p_cursors: for each priority that of
-- its plain lane, then that of its suspects.
CREATE FUNCTION choose_plain_v1(
    p_queue text, p_most integer, p_suspects integer, p_cursors bigint[], p_taken tid[], p_now bigint,
    OUT taken tid[], OUT suspects integer
) LANGUAGE plpgsql AS $$
DECLARE
    s record;
    v_suspects boolean := p_suspects > 0
        AND EXISTS (SELECT 1 FROM job WHERE suspect AND state::integer = 2 AND queue = p_queue);
    v_after bigint;
    p smallint;
BEGIN
    suspects := 0;
    IF NOT v_suspects AND NOT EXISTS (SELECT 1 FROM job WHERE back AND queue = p_queue) THEN
        taken := choose_from_cursors_v1(p_queue, p_most, p_cursors, p_taken, p_now);
        RETURN;
    END IF;
    taken := '{}';
    FOR n IN 0 .. 10 LOOP
        p := n::smallint;
        v_after := -1;
        IF v_suspects THEN
            FOR s IN SELECT ctid AS at, seq FROM job
                     WHERE suspect AND state::integer = 2 AND queue = p_queue AND priority = p AND lane = ''
                       AND (expires_at IS NULL OR expires_at > p_now) AND ctid <> ALL (p_taken)
                     ORDER BY seq LIMIT p_suspects LOOP
                EXIT WHEN cardinality(taken) >= p_most OR suspects >= p_suspects;
                taken := taken || ARRAY(SELECT plain_lane_jobs_v1(p_queue, p, v_after, s.seq, p_cursors[2 * n + 1],
                                                                p_most - cardinality(taken), p_taken, p_now));
                v_after := s.seq;
                EXIT WHEN cardinality(taken) >= p_most;
                PERFORM 1 FROM job WHERE ctid = s.at AND state::integer = 2 FOR NO KEY UPDATE SKIP LOCKED;
                IF FOUND THEN
                    taken := taken || s.at;
                    suspects := suspects + 1;
                END IF;
            END LOOP;
        END IF;
        EXIT WHEN cardinality(taken) >= p_most;
        taken := taken || ARRAY(SELECT plain_lane_jobs_v1(p_queue, p, v_after, 9223372036854775807, p_cursors[2 * n + 1],
                                                        p_most - cardinality(taken), p_taken, p_now));
        EXIT WHEN cardinality(taken) >= p_most;
    END LOOP;
END $$;
