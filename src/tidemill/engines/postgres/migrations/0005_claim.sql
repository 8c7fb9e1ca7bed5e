-- oldest code: 1
-- Taking jobs.

-- Whether a claim has to have the queue for itself: its gates are counted, its lanes are written, or its jobs
-- have to be put in order.
CREATE FUNCTION alone_v1(q queue) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT q.shaped OR q.limited OR q.stale IS NOT NULL
        OR coalesce(q.reshaped < pg_snapshot_xmin(pg_current_snapshot()), false)
$$;

-- The number of a claimant's last claim that took jobs.
CREATE FUNCTION last_claim_v1(p_claimant bytea) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce((SELECT number FROM claimed WHERE claimant = p_claimant ORDER BY number DESC LIMIT 1), 0);
END $$;

-- The locks of a claim, in their order; answers the queues locked exclusively. Taken before any row is touched.
-- With p_ids: the queues of these jobs, beside those named.
CREATE FUNCTION lock_claim_v1(p_member bytea, p_claimant bytea, p_queues text[], p_ids bytea[]) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    r record;
    v_alone text[] := '{}';
    v_queues text[] := p_queues;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(lock_v1('member', encode(p_member, 'hex')));
    PERFORM pg_advisory_xact_lock(lock_v1('claimant', encode(p_claimant, 'hex')));
    IF p_ids IS NOT NULL THEN
        v_queues := ARRAY(SELECT unnest(p_queues) UNION SELECT queue FROM job WHERE id = ANY (p_ids));
    END IF;
    FOR r IN SELECT u.name, q.name IS NOT NULL AND alone_v1(q) AS alone
             FROM unnest(v_queues) AS u (name) LEFT JOIN queue AS q ON q.name = u.name
             ORDER BY u.name COLLATE "C" LOOP
        IF r.alone THEN
            PERFORM pg_advisory_xact_lock(lock_v1('queue', r.name));
            v_alone := v_alone || r.name;
        ELSE
            PERFORM pg_advisory_xact_lock_shared(lock_v1('queue', r.name));
        END IF;
    END LOOP;
    RETURN v_alone;
END $$;

-- Rows of a plain lane between two seqs: those that were given back below the cursor, then those from it on.
-- Locked as they are read: none that is not taken, because another claim's cursor passes a locked row.
CREATE FUNCTION in_plain_lane_v1(
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
CREATE FUNCTION from_cursors_v1(p_queue text, p_most integer, p_cursors bigint[], p_taken tid[], p_now bigint)
RETURNS tid[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT j.at FROM unnest(p_cursors) WITH ORDINALITY AS c (seq, place)
        CROSS JOIN LATERAL (
            SELECT ctid AS at FROM job
            WHERE state = 2 AND queue = p_queue AND priority = ((c.place - 1) / 2)::smallint AND NOT suspect
              AND lane = '' AND seq >= c.seq AND (expires_at IS NULL OR expires_at > p_now)
              AND ctid <> ALL (p_taken)
            ORDER BY seq LIMIT p_most FOR NO KEY UPDATE SKIP LOCKED
        ) AS j
        WHERE c.place % 2 = 1
        LIMIT p_most);
END $$;

-- Choose and lock up to p_most jobs of a queue without limits and groups. p_cursors: for each priority that of
-- its plain lane, then that of its suspects.
CREATE FUNCTION plain_v1(
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
        taken := from_cursors_v1(p_queue, p_most, p_cursors, p_taken, p_now);
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
                taken := taken || ARRAY(SELECT in_plain_lane_v1(p_queue, p, v_after, s.seq, p_cursors[2 * n + 1],
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
        taken := taken || ARRAY(SELECT in_plain_lane_v1(p_queue, p, v_after, 9223372036854775807, p_cursors[2 * n + 1],
                                                        p_most - cardinality(taken), p_taken, p_now));
        EXIT WHEN cardinality(taken) >= p_most;
    END LOOP;
END $$;

-- A claim, or the same jobs again for a repeated number. The first row has `head` alone, the others are the
-- jobs; fences grow in the order of the answer, in which the rows do not come.
--   p_queues, p_mosts    the wanted queues in the order of their turns, and the most from each
--   p_cursors            22 for each wanted queue: by priority, the plain lane's and the suspects'
--   p_lanes              cursors of busy lanes with a group: for each wanted queue {"priority:lane": seq}
--   p_turns              where the claimant stopped: for each wanted queue {"priority": [lane, used]}
--   p_alone              the answer of lock_claim_v1, if that was called before
-- head: wait; refused and message; signals; turns [[queue, priority, lane, used]]; seen: the last seq drawn
-- before the look, and exhausted: the queues that gave all they had.
CREATE FUNCTION claim_v1(
    p_member bytea, p_claimant bytea, p_number bigint, p_queues text[], p_mosts integer[], p_most integer,
    p_suspects integer, p_ids bytea[], p_cursors bigint[], p_lanes jsonb, p_turns jsonb, p_now bigint,
    p_alone text[] DEFAULT NULL
) RETURNS TABLE (
    head jsonb, id bytea, fence bigint, seq bigint, task text, queue text, priority smallint, attempt integer,
    max_attempts integer, codec smallint, body bytea, headers bytea, key text, timeout bigint, retry bytea,
    created_at bigint, ready_at bigint, crashes integer, suspect boolean, limited boolean, on_dead text, schedule text,
    lane text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    c claimant;
    q queue;
    r record;
    v_name text;
    v_now bigint;
    v_alone text[];
    v_seen bigint;
    v_more boolean := false;
    v_room integer := 1000;       -- so many expired jobs may still die, of all queues: each may cost a millisecond
    v_locked boolean := false;    -- a lane was left because somebody has locked its next job
    v_signals text[] := '{}';
    v_names text[] := '{}';       -- the queues that take part, in the order of their turns
    v_queues queue[] := '{}';
    v_limited boolean[] := '{}';  -- apart, because to take a row out of an array for every job costs as much as a fetch
    v_gated boolean[] := '{}';
    v_place integer[] := '{}';    -- their places in p_queues
    v_want integer[] := '{}';
    v_active boolean[] := '{}';
    v_given integer[] := '{}';
    v_exhausted text[] := '{}';
    v_turns jsonb := '[]';
    v_taken tid[] := '{}';
    v_found tid[];
    v_of integer[] := '{}';       -- for each taken job the number of its queue
    v_rank bigint[] := '{}';      -- and its place in the answer: by its number in its queue, then by turn
    v_tasks text[];
    v_keys text[];
    v_left integer := p_most;
    v_suspects integer := p_suspects;
    v_share integer;
    v_count integer;
    v_fences bigint[];
    v_next bigint;
    v_own_turns jsonb;
    v_last bigint;
    i integer;
BEGIN
    v_alone := coalesce(p_alone, lock_claim_v1(
        p_member, p_claimant, CASE WHEN p_ids IS NULL THEN p_queues ELSE '{}' END, p_ids));
    SELECT name INTO v_name FROM member WHERE id = p_member;
    IF NOT FOUND THEN
        head := jsonb_build_object('refused', 'MemberGone');
        RETURN NEXT;
        RETURN;
    END IF;
    SELECT * INTO c FROM claimant WHERE id = p_claimant;
    IF FOUND THEN
        v_last := last_claim_v1(p_claimant);
        IF c.retired_at IS NOT NULL THEN
            head := jsonb_build_object('refused', 'ClaimantRetired');
            RETURN NEXT;
            RETURN;
        ELSIF c.member <> p_member THEN
            RAISE EXCEPTION USING ERRCODE = 'PN002', MESSAGE =
                'this claimant has claimed under another member: every start of a child is a new claimant';
        ELSIF p_number < v_last THEN
            head := jsonb_build_object('refused', 'ClaimOutOfOrder', 'number', v_last);
            RETURN NEXT;
            RETURN;
        ELSIF p_number = v_last THEN
            head := jsonb_build_object('wait', 0, 'again', true);
            RETURN NEXT;
            RETURN QUERY
                SELECT NULL::jsonb, j.id, j.fence, j.seq, j.task, j.queue, j.priority, j.attempts + 1, j.max_attempts,
                    j.codec, j.body, j.headers, nullif(j.key, ''), j.timeout, j.retry, j.created_at, j.ready_at,
                    j.crashes, j.suspect, o.limited OR o.shaped, j.on_dead, j.schedule, j.lane
                FROM job AS j JOIN queue AS o ON o.name = j.queue
                WHERE j.claimant = p_claimant AND j.claim_no = p_number AND j.token IS NOT NULL;
            RETURN;
        END IF;
    END IF;
    v_now := coalesce(p_now, instant_v1());
    SELECT t.signals INTO v_signals FROM tell_v1(1000, v_now) AS t;
    v_seen := (SELECT last_value - (NOT is_called)::integer FROM seq);  -- one that was never asked says 1

    -- bring the queues up to date, in the order of their names
    FOR r IN
        SELECT u.name, u.place, u.most FROM unnest(p_queues, p_mosts) WITH ORDINALITY AS u (name, most, place)
        WHERE p_ids IS NULL
        UNION ALL
        SELECT DISTINCT j.queue, 0, NULL::integer FROM job AS j WHERE j.id = ANY (p_ids)
        ORDER BY 1
    LOOP
        q := queue_v1(r.name, v_now);
        CONTINUE WHEN q.name IS NULL OR q.paused_at IS NOT NULL;
        IF alone_v1(q) AND NOT q.name = ANY (v_alone) THEN  -- it changed between the look and the lock
            v_more := true;
            CONTINUE;
        END IF;
        IF p_ids IS NULL AND v_room > 0
           AND EXISTS (SELECT 1 FROM job AS j WHERE j.queue = q.name AND j.expires_at <= v_now AND j.state <= 2) THEN
            SELECT v_signals || e.signals, CASE WHEN e.stopped THEN 0 ELSE v_room - e.moved END INTO v_signals, v_room
            FROM expire_v1(q.name, v_room, v_now) AS e;
            v_more := v_more OR v_room <= 0;
        END IF;
        v_signals := v_signals || (SELECT d.signals FROM due_v1(q, 1000, v_now) AS d);
        IF q.name = ANY (v_alone) THEN
            -- Jobs may still be stored in lanes of the former shape by whoever has read the queue before the change was
            -- there. They have drawn their xid before they read, and we, under the queue's lock, have drawn ours after it.
            IF q.reshaped = '18446744073709551615' THEN
                UPDATE queue SET reshaped = pg_current_xact_id() WHERE name = q.name;
            ELSIF q.reshaped < pg_snapshot_xmin(pg_current_snapshot()) THEN  -- all of them have ended
                UPDATE queue SET stale = '[]', reshaped = NULL WHERE name = q.name;
                q.stale := '[]';
            END IF;
            IF q.stale IS NOT NULL AND NOT reshape_v1(q) THEN
                v_more := true;
                CONTINUE;
            END IF;
            IF q.shaped THEN
                PERFORM fold_lanes_v1(q, v_now);
            END IF;
        END IF;
        v_names := v_names || q.name;
        v_queues := v_queues || q;
        v_limited := v_limited || (q.limited OR q.shaped);
        v_gated := v_gated || q.limited;
        v_place := v_place || r.place::integer;
        v_want := v_want || coalesce(r.most, p_most);
        v_active := v_active || true;
        v_given := v_given || 0;
    END LOOP;
    v_now := coalesce(p_now, instant_v1());

    IF p_ids IS NOT NULL THEN
        FOR r IN SELECT u.id, min(u.place) FROM unnest(p_ids) WITH ORDINALITY AS u (id, place) GROUP BY 1 ORDER BY 2 LOOP
            EXIT WHEN v_left <= 0;
            SELECT j.ctid AS at, j.id, j.queue, j.suspect, j.task, j.key, j.expires_at <= v_now AS expired INTO r
            FROM job AS j WHERE j.id = r.id AND j.state::integer = 2 AND j.queue = ANY (v_names);
            CONTINUE WHEN NOT FOUND;
            IF r.expired THEN
                v_signals := v_signals || expire_one_v1(r.id, v_now);
                CONTINUE;
            END IF;
            CONTINUE WHEN r.suspect AND v_suspects <= 0;
            i := array_position(v_names, r.queue);
            q := v_queues[i];
            CONTINUE WHEN q.limited AND NOT pass_v1(q, r.task, r.key, v_now, ARRAY(
                SELECT (j.task, j.key)::pair_v1 FROM unnest(v_taken) AS t (at) JOIN job AS j ON j.ctid = t.at
                WHERE j.queue = q.name));
            PERFORM 1 FROM job AS j WHERE j.ctid = r.at AND j.state::integer = 2 FOR NO KEY UPDATE SKIP LOCKED;
            CONTINUE WHEN NOT FOUND;
            v_taken := v_taken || r.at;
            v_of := v_of || i;
            v_rank := v_rank || cardinality(v_taken)::bigint;
            v_suspects := v_suspects - r.suspect::integer;
            v_left := v_left - 1;
        END LOOP;
    ELSE
        WHILE v_left > 0 AND true = ANY (v_active) LOOP
            v_share := greatest(1, v_left / (SELECT count(*) FROM unnest(v_active) AS a WHERE a)::integer);
            FOR i IN SELECT u.n FROM unnest(v_place) WITH ORDINALITY AS u (place, n) ORDER BY u.place LOOP
                CONTINUE WHEN NOT v_active[i];
                EXIT WHEN v_left <= 0;
                q := v_queues[i];
                v_share := CASE WHEN cardinality(v_names) = 1 THEN v_left ELSE v_share END;
                v_count := least(v_share, v_left, v_want[i] - v_given[i]);
                IF v_count <= 0 THEN
                    v_active[i] := false;
                    CONTINUE;
                END IF;
                IF q.limited OR q.shaped THEN
                    v_found := '{}';
                    SELECT coalesce(array_agg(j.task), '{}'), coalesce(array_agg(j.key), '{}') INTO v_tasks, v_keys
                    FROM unnest(v_taken, v_of) AS t (at, n) JOIN job AS j ON j.ctid = t.at WHERE t.n = i;
                    v_own_turns := coalesce(p_turns -> (v_place[i] - 1), '{}') || coalesce((
                        SELECT jsonb_object_agg(t ->> 1, jsonb_build_array(t -> 2, t -> 3))
                        FROM jsonb_array_elements(v_turns) AS t WHERE t ->> 0 = q.name), '{}');
                    FOR r IN SELECT * FROM gated_v1(q, v_count, v_suspects, v_own_turns,
                                                    p_cursors[22 * v_place[i] - 21 : 22 * v_place[i]],
                                                    coalesce(p_lanes -> (v_place[i] - 1), '{}'),
                                                    v_taken, v_tasks, v_keys, v_now) LOOP
                        v_locked := v_locked OR r.at IS NULL;
                        CONTINUE WHEN r.at IS NULL;
                        v_found := v_found || r.at;
                        v_suspects := v_suspects - r.suspect::integer;
                        v_turns := v_turns || jsonb_build_array(jsonb_build_array(q.name, r.priority, r.lane, r.used));
                    END LOOP;
                ELSE
                    SELECT p.taken, v_suspects - p.suspects INTO v_found, v_suspects
                    FROM plain_v1(q.name, v_count, v_suspects, p_cursors[22 * v_place[i] - 21 : 22 * v_place[i]],
                                  v_taken, v_now) AS p;
                    IF cardinality(v_found) < v_count THEN
                        v_exhausted := v_exhausted || q.name;
                    END IF;
                END IF;
                v_active[i] := cardinality(v_found) >= v_count;
                IF v_found <> '{}' THEN
                    v_taken := v_taken || v_found;
                    v_of := v_of || array_fill(i, ARRAY[cardinality(v_found)]);
                    v_rank := v_rank || ARRAY(
                        SELECT (v_given[i] + n) * 10000 + v_place[i] FROM generate_series(1, cardinality(v_found)) AS n);
                    v_given[i] := v_given[i] + cardinality(v_found);
                    v_left := v_left - cardinality(v_found);
                END IF;
            END LOOP;
        END LOOP;
    END IF;

    head := jsonb_build_object('signals', to_jsonb(v_signals), 'turns', v_turns, 'seen', v_seen,
                               'exhausted', to_jsonb(v_exhausted));
    IF v_left > 0 THEN
        IF v_more OR EXISTS (SELECT 1 FROM ripple) THEN
            head := head || '{"wait": 0}';
        ELSE
            FOREACH q IN ARRAY v_queues LOOP
                v_next := least(v_next, opens_next_v1(q, v_now));
            END LOOP;
            -- Whoever has locked it tells nobody when it is free. Most hold it for some milliseconds; a user's transaction
            -- may for minutes, so not at once.
            IF v_locked THEN
                v_next := least(v_next, v_now + 50000);
            END IF;
            head := head || jsonb_build_object(
                'wait', CASE WHEN v_next IS NOT NULL THEN greatest(0, v_next - v_now) END);
        END IF;
    END IF;
    RETURN NEXT;
    IF v_taken = '{}' THEN
        RETURN;
    END IF;
    IF c.id IS NULL THEN
        INSERT INTO claimant (id, member) VALUES (p_claimant, p_member);
    END IF;
    INSERT INTO claimed (claimant, number) VALUES (p_claimant, p_number);
    v_fences := fences_v1(cardinality(v_taken));
    IF cardinality(v_names) > 1 THEN
        SELECT array_agg(u.at ORDER BY u.rank), array_agg(u.n ORDER BY u.rank) INTO v_taken, v_of
        FROM unnest(v_taken, v_of, v_rank) AS u (at, n, rank);
    END IF;
    RETURN QUERY
        UPDATE job AS j SET state = 3, token = t.fence, fence = t.fence, claimant = p_claimant, claim_no = p_number,
            member = v_name, claimed_at = v_now, started_at = NULL, back = false, gated = v_gated[t.n]
        FROM unnest(v_taken, v_fences, v_of) AS t (at, fence, n)
        WHERE j.ctid = t.at AND j.state::integer = 2
        RETURNING NULL::jsonb, j.id, j.fence, j.seq, j.task, j.queue, j.priority, j.attempts + 1, j.max_attempts,
            j.codec, j.body, j.headers, nullif(j.key, ''), j.timeout, j.retry, j.created_at, j.ready_at, j.crashes,
            j.suspect, v_limited[t.n], j.on_dead, j.schedule, j.lane;
END $$;
