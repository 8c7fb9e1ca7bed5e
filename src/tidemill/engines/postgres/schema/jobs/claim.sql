-- Taking jobs: the general claim. The entrance is `claim_plain_v1` in the next file, which does most claims itself.
--
--     claim_v1
--       pick_queues_v1           the wanted queues that may have something to give: all others cost nothing more
--       lock_claim_v1            the locks, before any row is touched
--       check_claim_v1           refuse, or answer a repeated number
--       prepare_queues_v1        bring each of these queues up to date
--       choose_named_v1          jobs that the request names by their ids, or
--       choose_by_tasks_v1       a share of each queue where tasks are paused, unknown to the claimant, or stand aside
--                                (order/aside), or
--       choose_in_queues_v1      a share of each queue
--         choose_in_queue_v1     by turns (order/turns), or in plain lanes (order/plain_lanes)
--       wait_for_more_v1         when the claimant should come again
--       start_runs_v1            the chosen jobs run from now on
--
-- The steps pass one value to each other, a selection. As one function of 251 lines it was no faster: a claim of 100 jobs
-- from five plain queues took 4.8 ms before and 3.9 ms now (the fastest of 200), 25 ms both on a busy machine (the median).

-- An answer. The first row has `head` alone; the others have a job each. Fences grow in the order of the answer; the rows
-- come in any order.
CREATE TYPE claim_answer_v1 AS (
    head jsonb, id bytea, fence bigint, seq bigint, task text, queue text, priority smallint, attempt integer,
    max_attempts integer, codec smallint, body bytea, headers bytea, key text, timeout bigint, retry bytea,
    created_at bigint, ready_at bigint, crashes integer, suspect boolean, limited boolean, on_dead text, schedule text,
    snoozes integer, lane text
);

-- What a claim has chosen so far, of all its queues.
CREATE TYPE selection_v1 AS (
    wanted    integer,     -- how many more jobs the claim wants
    suspects  integer,     -- how many more suspects it may take
    names     text[],      -- the queues that take part, by name,
    queues    queue[],     -- their rows,
    positions integer[],   -- their positions in the request, which are the order of their turns,
    mosts     integer[],   -- and the most to take from each
    taken     tid[],       -- the chosen jobs, locked,
    queue_of  integer[],   -- for each the number of its queue in `names`,
    ranks     bigint[],    -- and its rank in the answer
    turns     jsonb,       -- {queue: {priority: [lane, used]}}: the lanes that gave last
    exhausted text[],      -- queues whose plain lanes gave all they had
    more      boolean,     -- a queue was not brought up to date: claim again at once
    locked    boolean,     -- a lane was left because another transaction has locked its next job
    signals   text[]
);

-- A wanted queue, as it looks before anything is locked.
CREATE TYPE pick_v1 AS (
    name      text,
    position  integer,   -- in the request
    exclusive boolean,   -- a claim has to have it for itself
    busy      boolean,   -- it may give something, or has to be brought up to date
    opens_at  bigint     -- when time alone opens something there
);

-- Whether a claim has to have the queue for itself: its gates are counted, its lanes are written, or its jobs are moved
-- to other lanes.
CREATE FUNCTION needs_exclusive_v1(q queue) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT q.laned OR q.stale IS NOT NULL
        OR coalesce(q.reshaped < pg_snapshot_xmin(pg_current_snapshot()), false)
$$;

-- The wanted queues that exist and are not paused, in the order of the request. It locks nothing. What comes after it sends a signal.
-- In one statement, because it is all that a claim pays for the queues that have nothing for it: about six reads of an index for
-- each, and up to fourteen if it is plain (3.5 and 7.5 us). OFFSET 0 keeps each condition a search of its own: the planner
-- likes to hash an EXISTS, which reads all that the index has. ORDER BY name: by parked_held, not over all that is parked.
CREATE FUNCTION pick_queues_v1(p_queues text[], p_suspects integer, p_cursors bigint[], p_now bigint) RETURNS pick_v1[]
LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT ROW(u.name, u.position, coalesce(needs_exclusive_v1(q), false), CASE
            WHEN q.name IS NULL OR t.due_at <= p_now OR t.wake_at <= p_now OR q.stale IS NOT NULL OR q.reshaped IS NOT NULL THEN true
            WHEN EXISTS (SELECT 1 FROM job AS j WHERE j.queue = q.name AND j.expires_at <= p_now AND j.state <= 2 OFFSET 0) THEN true
            WHEN NOT q.laned THEN
                EXISTS (  -- a ready job, from this process's cursors on or marked
                    SELECT 1 FROM generate_series(0, 10) AS n
                    CROSS JOIN LATERAL (
                        SELECT 1 FROM job
                        WHERE state = 2 AND queue = q.name AND priority = n::smallint AND NOT suspect AND lane = ''
                          AND seq >= p_cursors[22 * u.position - 21 + 2 * n] LIMIT 1
                    ) AS j)
                OR EXISTS (SELECT 1 FROM job WHERE back AND queue = q.name OFFSET 0)
                OR p_suspects > 0 AND EXISTS (SELECT 1 FROM job WHERE suspect AND state::integer = 2 AND queue = q.name OFFSET 0)
                OR EXISTS (SELECT 1 FROM job WHERE aside AND queue = q.name OFFSET 0)
            WHEN q.counts_runs AND EXISTS (SELECT 1 FROM freed WHERE queue = q.name OFFSET 0)
                 AND EXISTS (SELECT 1 FROM parked WHERE queue = q.name AND wake_at IS NULL ORDER BY name OFFSET 0) THEN true
            WHEN EXISTS (SELECT 1 FROM lane WHERE queue = q.name AND task = '' AND NOT parked AND (NOT suspect OR p_suspects > 0)
                         ORDER BY queue, task, priority, lane OFFSET 0)
                 OR EXISTS (SELECT 1 FROM lane_new WHERE queue = q.name AND (NOT suspect OR p_suspects > 0) OFFSET 0)
                 OR EXISTS (SELECT 1 FROM job WHERE aside AND queue = q.name OFFSET 0) THEN
                NOT EXISTS (SELECT 1 FROM parked WHERE queue = q.name AND kind = 'queue' AND name = '' OFFSET 0)
            WHEN q.tasks <> '{}' THEN EXISTS (
                    SELECT 1 FROM jsonb_object_keys(q.tasks) AS t (name)
                    CROSS JOIN LATERAL (
                        SELECT 1 FROM lane WHERE queue = q.name AND task = t.name AND NOT parked
                          AND (NOT suspect OR p_suspects > 0)
                        ORDER BY queue, task, priority, lane LIMIT 1
                    ) AS e
                    WHERE NOT EXISTS (
                        SELECT 1 FROM parked WHERE queue = q.name AND kind = 'task' AND parked.name = t.name OFFSET 0))
                AND NOT EXISTS (SELECT 1 FROM parked WHERE queue = q.name AND kind = 'queue' AND name = '' OFFSET 0)
            ELSE false END,
            least(t.due_at, t.wake_at))::pick_v1
        FROM unnest(p_queues) WITH ORDINALITY AS u (name, position) LEFT JOIN queue AS q ON q.name = u.name
        CROSS JOIN LATERAL (
            SELECT (SELECT j.due_at FROM job AS j WHERE j.state = 1 AND j.queue = u.name ORDER BY j.due_at LIMIT 1) AS due_at,
                CASE WHEN q.limited THEN (
                    SELECT p.wake_at FROM parked AS p WHERE p.queue = u.name AND p.wake_at IS NOT NULL
                    ORDER BY p.wake_at LIMIT 1) END AS wake_at OFFSET 0
        ) AS t
        WHERE q.paused_at IS NULL AND (q.name IS NOT NULL OR EXISTS (SELECT 1 FROM queue_new AS n WHERE n.name = u.name OFFSET 0))
        ORDER BY u.position);
END $$;

-- The number of a claimant's last claim that took jobs.
CREATE FUNCTION last_claim_v1(p_claimant bytea) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    RETURN coalesce((SELECT number FROM claimed WHERE claimant = p_claimant ORDER BY number DESC LIMIT 1), 0);
END $$;

-- The locks of a claim, in their order: with the queues named.
CREATE FUNCTION lock_claim_v1(p_member bytea, p_claimant bytea, p_queues text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    r record;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(lock_v1('member', encode(p_member, 'hex')));
    PERFORM pg_advisory_xact_lock(lock_v1('claimant', encode(p_claimant, 'hex')));
    FOR r IN SELECT u.name, q.name IS NOT NULL AND needs_exclusive_v1(q) AS exclusive
             FROM (SELECT DISTINCT n AS name FROM unnest(p_queues) AS n) AS u LEFT JOIN queue AS q ON q.name = u.name
             ORDER BY u.name COLLATE "C" LOOP
        IF r.exclusive THEN
            PERFORM pg_advisory_xact_lock(lock_v1('queue', r.name));
        ELSE
            PERFORM pg_advisory_xact_lock_shared(lock_v1('queue', r.name));
        END IF;
    END LOOP;
END $$;

-- The locks of a claim that comes after a settle in the same step: before the settle touches a row, because to wait for them
-- then could be a deadlock. What the settle makes ready elsewhere is locked by `try_lock_v1`. Of several wanted queues these
-- are the laned ones with an open lane: a plain queue's lock is nearly always free, and a full gate is not waited for.
CREATE FUNCTION lock_before_settle_v1(
    p_member bytea, p_claimant bytea, p_queues text[], p_ids bytea[], p_then_queues text[]
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_claim_v1(p_member, p_claimant, CASE
        WHEN p_ids IS NOT NULL THEN  -- they may be of jobs that this settle stores
            ARRAY(SELECT queue FROM job WHERE id = ANY (p_ids)) || p_then_queues
        WHEN cardinality(p_queues) = 1 THEN p_queues
        ELSE ARRAY(
            SELECT q.name FROM unnest(p_queues) AS u (name) JOIN queue AS q ON q.name = u.name
            CROSS JOIN LATERAL (
                SELECT 1 FROM lane WHERE lane.queue = q.name AND NOT parked ORDER BY queue, task, priority, lane LIMIT 1) AS e
            WHERE q.laned AND NOT EXISTS (
                SELECT 1 FROM parked AS p WHERE p.queue = q.name AND p.kind = 'queue' AND p.name = '' OFFSET 0)) END);
END $$;

-- Lock a queue without waiting: in a step that has locked rows already, or that has less of a lock than it needs. True at once
-- if the step has the lock.
CREATE FUNCTION try_lock_v1(p_queue text, p_exclusive boolean) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    IF p_exclusive THEN
        RETURN pg_try_advisory_xact_lock(lock_v1('queue', p_queue));
    END IF;
    RETURN pg_try_advisory_xact_lock_shared(lock_v1('queue', p_queue));
END $$;

-- The head of an answer that needs no choice: a refusal, or `again` for a repeated number. NULL: the claim may take jobs.
CREATE FUNCTION check_claim_v1(p_member bytea, p_claimant bytea, p_number bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    c claimant;
    v_last bigint;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM member WHERE id = p_member) THEN
        RETURN jsonb_build_object('refused', 'MemberGone');
    END IF;
    SELECT * INTO c FROM claimant WHERE id = p_claimant;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    v_last := last_claim_v1(p_claimant);
    IF c.retired_at IS NOT NULL THEN
        RETURN jsonb_build_object('refused', 'ClaimantRetired');
    ELSIF c.member <> p_member THEN
        RAISE EXCEPTION USING ERRCODE = 'PN002', MESSAGE =
            'this claimant has claimed under another member: every start of a child is a new claimant';
    ELSIF p_number < v_last THEN
        RETURN jsonb_build_object('refused', 'ClaimOutOfOrder', 'number', v_last);
    ELSIF p_number = v_last THEN
        RETURN jsonb_build_object('wait', 0, 'again', true);
    END IF;
    RETURN NULL;
END $$;

-- The jobs of a claim that was answered before, as far as they still run.
CREATE FUNCTION same_runs_v1(p_claimant bytea, p_number bigint) RETURNS SETOF claim_answer_v1 LANGUAGE plpgsql AS $$
BEGIN
    RETURN QUERY
        SELECT NULL::jsonb, j.id, j.fence, j.seq, j.task, j.queue, j.priority, j.attempts + 1, j.max_attempts,
            j.codec, j.body, j.headers, nullif(j.key, ''), j.timeout, j.retry, j.created_at, j.ready_at,
            j.crashes, j.suspect, o.laned, j.on_dead, j.schedule, j.snoozes, j.lane
        FROM job AS j JOIN queue AS o ON o.name = j.queue
        WHERE j.claimant = p_claimant AND j.claim_no = p_number AND j.token IS NOT NULL;
END $$;

-- Bring the lanes of an exclusively locked queue up to date. False: not all its jobs are in their lanes yet, or not all
-- its gates are open.
--
-- After a change of shape, a transaction that read the queue before may still store jobs in lanes of the former shape. It
-- drew its xid before it read. We draw ours after the change, under the queue's lock. When all transactions up to ours
-- have ended, the waiting jobs are scanned once more. Its run, if it ended one, told of no gate that is new: a claim that
-- counted that run has parked the gate, so every gate is measured once more.
CREATE FUNCTION prepare_lanes_v1(q queue, p_now bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_whole boolean;
BEGIN
    IF q.reshaped = '18446744073709551615' THEN
        UPDATE queue SET reshaped = pg_current_xact_id() WHERE name = q.name;
    ELSIF q.reshaped < pg_snapshot_xmin(pg_current_snapshot()) THEN
        IF q.shaped OR has_groups_v1(q.name) THEN
            q.stale := '[]';
        END IF;
        UPDATE queue SET stale = q.stale, reshaped = NULL WHERE name = q.name;
        PERFORM open_all_gates_v1(q.name);
        IF q.limited THEN
            PERFORM count_runs_v1(q.name);
        END IF;
    END IF;
    IF q.stale IS NOT NULL AND NOT reshape_v1(q) THEN
        RETURN false;
    END IF;
    IF q.laned THEN
        IF q.reshaped IS NOT NULL THEN  -- such a transaction announces nothing
            PERFORM open_plain_lanes_v1(q.name);
        END IF;
        v_whole := fold_gates_v1(q, p_now);
        RETURN fold_lanes_v1(q) AND v_whole;
    END IF;
    RETURN true;
END $$;

-- Bring queues up to date, in the order of their names, and put those that may have jobs into the selection: expired jobs die,
-- due jobs become ready, lanes are prepared. A queue whose lock is not there is left for the next claim, which comes at once:
-- it changed, or got its first job, after the locks were taken.
CREATE FUNCTION prepare_queues_v1(s selection_v1, p_picks pick_v1[], p_mosts integer[], p_ids bytea[], p_now bigint) RETURNS selection_v1 LANGUAGE plpgsql AS $$
DECLARE
    r record;
    e record;
    q queue;
    v_expire integer := 1000;  -- so many expired jobs may die in one claim: each may cost a millisecond
BEGIN
    FOR r IN
        SELECT k.name, k.position, p_mosts[k.position] AS most FROM unnest(p_picks) AS k WHERE k.busy
        UNION ALL
        SELECT DISTINCT j.queue, 0, NULL::integer FROM job AS j WHERE j.id = ANY (p_ids)
        ORDER BY 1
    LOOP
        q := find_queue_v1(r.name, p_now);
        CONTINUE WHEN q.name IS NULL OR q.paused_at IS NOT NULL;
        IF NOT try_lock_v1(q.name, needs_exclusive_v1(q)) THEN
            s.more := true;
            CONTINUE;
        END IF;
        IF p_ids IS NULL AND v_expire > 0
           AND EXISTS (SELECT 1 FROM job AS j WHERE j.queue = q.name AND j.expires_at <= p_now AND j.state <= 2) THEN
            SELECT * INTO e FROM expire_v1(q.name, v_expire, p_now);
            s.signals := s.signals || e.signals;
            v_expire := CASE WHEN e.stopped THEN 0 ELSE v_expire - e.moved END;
            s.more := s.more OR v_expire <= 0;
        END IF;
        s.signals := s.signals || (SELECT d.signals FROM promote_due_v1(q, 1000, p_now) AS d);
        IF needs_exclusive_v1(q) AND NOT prepare_lanes_v1(q, p_now) THEN
            s.more := true;
            CONTINUE;
        END IF;
        s.names := s.names || q.name;
        s.queues := s.queues || q;
        s.positions := s.positions || r.position::integer;
        s.mosts := s.mosts || coalesce(r.most, s.wanted);
    END LOOP;
    RETURN s;
END $$;

-- Choose jobs that the request names, in the order of their ids there.
CREATE FUNCTION choose_named_v1(s selection_v1, p_ids bytea[], p_now bigint) RETURNS selection_v1 LANGUAGE plpgsql AS $$
DECLARE
    r record;
    q queue;
    v_number integer;
BEGIN
    FOR r IN SELECT u.id, min(u.position) FROM unnest(p_ids) WITH ORDINALITY AS u (id, position)
             GROUP BY 1 ORDER BY 2 LOOP
        EXIT WHEN s.wanted <= 0;
        SELECT j.ctid AS at, j.id, j.queue, j.suspect, j.task, j.key, j.expires_at <= p_now AS expired INTO r
        FROM job AS j WHERE j.id = r.id AND j.state::integer = 2 AND j.queue = ANY (s.names);
        CONTINUE WHEN NOT FOUND;
        IF r.expired THEN
            s.signals := s.signals || expire_one_v1(r.id, p_now);
            CONTINUE;
        END IF;
        CONTINUE WHEN r.suspect AND s.suspects <= 0;
        v_number := array_position(s.names, r.queue);
        q := s.queues[v_number];
        CONTINUE WHEN q.limited AND NOT pass_gates_v1(q, r.task, r.key, p_now, ARRAY(
            SELECT (j.task, j.key)::pair_v1 FROM unnest(s.taken) AS t (at) JOIN job AS j ON j.ctid = t.at
            WHERE j.queue = q.name));
        PERFORM 1 FROM job AS j WHERE j.ctid = r.at AND j.state::integer = 2 FOR NO KEY UPDATE SKIP LOCKED;
        CONTINUE WHEN NOT FOUND;
        s.taken := s.taken || r.at;
        s.queue_of := s.queue_of || v_number;
        s.ranks := s.ranks || cardinality(s.taken)::bigint;
        s.suspects := s.suspects - r.suspect::integer;
        s.wanted := s.wanted - 1;
    END LOOP;
    RETURN s;
END $$;

-- Choose up to p_most jobs of one queue, and append them to `taken` alone. p_number: the queue's number in the selection.
CREATE FUNCTION choose_in_queue_v1(
    s selection_v1, p_number integer, p_most integer, p_cursors bigint[], p_lanes jsonb, p_turns jsonb, p_now bigint
) RETURNS selection_v1 LANGUAGE plpgsql AS $$
DECLARE
    q queue := s.queues[p_number];
    v_at integer := s.positions[p_number];
    v_cursors bigint[] := p_cursors[22 * v_at - 21 : 22 * v_at];
    v_turns jsonb;
    v_tasks text[] := '{}';
    v_keys text[] := '{}';
    v_found tid[];
    v_suspects integer;
    c choice_v1;
BEGIN
    IF NOT q.laned THEN
        SELECT p.taken, p.suspects INTO v_found, v_suspects
        FROM choose_plain_v1(q.name, p_most, s.suspects, v_cursors, s.taken, p_now) AS p;
        s.suspects := s.suspects - v_suspects;
        s.taken := s.taken || v_found;
        IF cardinality(v_found) < p_most THEN
            s.exhausted := s.exhausted || q.name;
        END IF;
        RETURN s;
    END IF;
    IF s.taken <> '{}' THEN
        SELECT coalesce(array_agg(j.task), '{}'), coalesce(array_agg(j.key), '{}') INTO v_tasks, v_keys
        FROM unnest(s.taken, s.queue_of) AS t (at, n) JOIN job AS j ON j.ctid = t.at WHERE t.n = p_number;
    END IF;
    v_turns := coalesce(s.turns -> q.name, '{}');
    c := choose_by_turns_v1(
        q, p_most, s.suspects, coalesce(p_turns -> (v_at - 1), '{}') || v_turns, v_cursors,
        coalesce(p_lanes -> (v_at - 1), '{}'), s.taken, v_tasks, v_keys, p_now);
    s.suspects := c.suspects;
    s.taken := s.taken || c.taken;
    s.turns := s.turns || jsonb_build_object(q.name, v_turns || c.turns);
    s.locked := s.locked OR c.locked;
    RETURN s;
END $$;

-- Whether more than one queue has suspects that are ready.
CREATE FUNCTION suspects_in_several_v1(p_queues text[]) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT count(*) > 1 FROM unnest(p_queues) AS u (name)
    CROSS JOIN LATERAL (
        SELECT 1 FROM job AS j WHERE j.suspect AND j.state::integer = 2 AND j.queue = u.name LIMIT 1
    ) AS found
$$;

-- Choose a share of each queue, in the order of their turns, until the claim has what it wants or no queue has more. In
-- the answer the first jobs of all queues come before their second ones. While several queues compete for the allowance of
-- suspects, a share is one job: a larger one would give the allowance to the queue that is read first.
CREATE FUNCTION choose_in_queues_v1(
    s selection_v1, p_cursors bigint[], p_lanes jsonb, p_turns jsonb, p_now bigint
) RETURNS selection_v1 LANGUAGE plpgsql AS $$
DECLARE
    v_queues integer := cardinality(s.names);
    v_active boolean[] := array_fill(true, ARRAY[v_queues]);
    v_given integer[] := array_fill(0, ARRAY[v_queues]);
    v_compete boolean := v_queues > 1 AND s.suspects > 0 AND suspects_in_several_v1(s.names);
    v_share integer;
    v_most integer;
    v_found integer;
    i integer;
BEGIN
    WHILE s.wanted > 0 AND true = ANY (v_active) LOOP
        v_share := CASE WHEN v_queues = 1 THEN s.wanted WHEN v_compete AND s.suspects > 0 THEN 1 ELSE
            greatest(1, s.wanted / cardinality(array_positions(v_active, true))) END;
        FOR i IN SELECT u.n FROM unnest(s.positions) WITH ORDINALITY AS u (position, n) ORDER BY u.position LOOP
            CONTINUE WHEN NOT v_active[i];
            EXIT WHEN s.wanted <= 0;
            v_most := least(v_share, s.wanted, s.mosts[i] - v_given[i]);
            IF v_most <= 0 THEN
                v_active[i] := false;
                CONTINUE;
            END IF;
            v_found := -cardinality(s.taken);
            s := choose_in_queue_v1(s, i, v_most, p_cursors, p_lanes, p_turns, p_now);
            v_found := v_found + cardinality(s.taken);
            v_active[i] := v_found >= v_most;
            IF v_found > 0 THEN
                s.queue_of := s.queue_of || array_fill(i, ARRAY[v_found]);
                s.ranks := s.ranks || ARRAY(
                    SELECT (v_given[i] + n) * 10000 + s.positions[i] FROM generate_series(1, v_found) AS n);
                v_given[i] := v_given[i] + v_found;
                s.wanted := s.wanted - v_found;
            END IF;
        END LOOP;
    END LOOP;
    RETURN s;
END $$;

-- After how long a claim that got less than it wanted should come again; NULL: when it gets a signal.
CREATE FUNCTION wait_for_more_v1(s selection_v1, p_picks pick_v1[], p_now bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    q queue;
    v_next bigint := (SELECT min(k.opens_at) FROM unnest(p_picks) AS k WHERE NOT k.busy);
BEGIN
    IF s.more OR EXISTS (SELECT 1 FROM ended_parent) THEN
        RETURN 0;
    END IF;
    FOREACH q IN ARRAY s.queues LOOP
        v_next := least(v_next, queue_opens_at_v1(q, p_now));
    END LOOP;
    -- A transaction that has locked a job sends no signal when it ends. Most end within milliseconds. A user's
    -- transaction may last for minutes, so the claim does not come again at once.
    IF s.locked THEN
        v_next := least(v_next, p_now + 50000);
    END IF;
    RETURN CASE WHEN v_next IS NOT NULL THEN greatest(0, v_next - p_now) END;
END $$;

-- How the jobs that are under a rate start, for the head: {queue: [rules, how pressed]}. (model.starts)
CREATE FUNCTION starts_v1(s selection_v1, p_now bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    q queue;
    v_starts jsonb := '{}';
BEGIN
    FOREACH q IN ARRAY s.queues LOOP
        CONTINUE WHEN q.starts IS NULL;
        v_starts := v_starts || (
            SELECT jsonb_build_object(q.name, starts_in_v1(q, array_agg(j.task), array_agg(j.key), p_now))
            FROM unnest(s.taken, s.queue_of) AS t (at, n) JOIN job AS j ON j.ctid = t.at
            WHERE s.names[t.n] = q.name);
    END LOOP;
    RETURN v_starts;
END $$;

-- The same for a repeated claim: it is too late.
CREATE FUNCTION starts_again_v1(p_claimant bytea, p_number bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    RETURN (SELECT coalesce(jsonb_object_agg(o.name, jsonb_build_array(o.starts, 2)), '{}') FROM queue AS o
            WHERE o.starts IS NOT NULL AND o.name IN (
                SELECT j.queue FROM job AS j
                WHERE j.claimant = p_claimant AND j.claim_no = p_number AND j.token IS NOT NULL));
END $$;

-- The chosen jobs run from now on.
CREATE FUNCTION start_runs_v1(s selection_v1, p_member bytea, p_claimant bytea, p_number bigint, p_now bigint)
RETURNS SETOF claim_answer_v1 LANGUAGE plpgsql AS $$
DECLARE
    v_member text := (SELECT name FROM member WHERE id = p_member);
    v_fences bigint[] := fences_v1(cardinality(s.taken));
    -- apart, because to take a row out of an array for every job costs as much as a fetch
    v_gated boolean[] := ARRAY(SELECT o.limited FROM unnest(s.queues) AS o);
    v_limited boolean[] := ARRAY(SELECT o.laned FROM unnest(s.queues) AS o);
BEGIN
    IF NOT EXISTS (SELECT 1 FROM claimant WHERE id = p_claimant) THEN
        INSERT INTO claimant (id, member) VALUES (p_claimant, p_member);
    END IF;
    INSERT INTO claimed (claimant, number) VALUES (p_claimant, p_number);
    IF EXISTS (SELECT 1 FROM unique_key WHERE at_start) THEN
        PERFORM free_keys_at_start_v1(s.taken);
    END IF;
    IF cardinality(s.names) > 1 THEN
        SELECT array_agg(u.at ORDER BY u.rank), array_agg(u.n ORDER BY u.rank) INTO s.taken, s.queue_of
        FROM unnest(s.taken, s.queue_of, s.ranks) AS u (at, n, rank);
    END IF;
    RETURN QUERY
        UPDATE job AS j SET state = 3, token = t.fence, fence = t.fence, claimant = p_claimant, claim_no = p_number,
            member = v_member, claimed_at = p_now, started_at = NULL, back = false, aside = false,
            gated = v_gated[t.n]
        FROM unnest(s.taken, v_fences, s.queue_of) AS t (at, fence, n)
        WHERE j.ctid = t.at AND j.state::integer = 2
        RETURNING NULL::jsonb, j.id, j.fence, j.seq, j.task, j.queue, j.priority, j.attempts + 1, j.max_attempts,
            j.codec, j.body, j.headers, nullif(j.key, ''), j.timeout, j.retry, j.created_at, j.ready_at, j.crashes,
            j.suspect, v_limited[t.n], j.on_dead, j.schedule, j.snoozes, j.lane;
END $$;

-- A claim, or the same jobs again for a repeated number.
--   p_queues, p_mosts    the wanted queues in the order of their turns, and the most from each
--   p_cursors            22 for each wanted queue: by priority, the plain lane's and the suspects'
--   p_lanes              cursors of busy lanes with a group: for each wanted queue {"priority:lane": seq}
--   p_turns              where the claimant stopped: for each wanted queue {"priority": [lane, used]}
--   p_unknown            tasks that the claimant does not know
--   p_settled            the step has settled runs before: it has the locks of `lock_before_settle_v1`, and may not wait for more
-- head: `now`; `wait`; `refused` and `number`; `again`; `signals`; `turns` {queue: {priority: [lane, used]}}; `seen`, the last
-- seq drawn before the choice; `exhausted`, the queues that gave all they had; `starts`, when jobs under a rate start.
CREATE FUNCTION claim_v1(
    p_member bytea, p_claimant bytea, p_number bigint, p_queues text[], p_mosts integer[], p_most integer,
    p_suspects integer, p_ids bytea[], p_cursors bigint[], p_lanes jsonb, p_turns jsonb, p_unknown text[], p_now bigint,
    p_settled boolean DEFAULT false
) RETURNS SETOF claim_answer_v1 LANGUAGE plpgsql AS $$
DECLARE
    a claim_answer_v1;
    s selection_v1;
    d record;
    v_now bigint;
    v_seen bigint;
    v_picks pick_v1[] := '{}';
    v_ids bytea[] := p_ids;
BEGIN
    v_seen := (SELECT last_value - (NOT is_called)::integer FROM seq);  -- a sequence that was never used says 1
    IF p_settled THEN
        NULL;
    ELSIF p_ids IS NOT NULL THEN
        PERFORM lock_claim_v1(p_member, p_claimant, ARRAY(SELECT queue FROM job WHERE id = ANY (p_ids)));
    ELSE
        v_picks := pick_queues_v1(p_queues, p_suspects, p_cursors, coalesce(p_now, instant_v1()));
        PERFORM lock_claim_v1(p_member, p_claimant, ARRAY(SELECT k.name FROM unnest(v_picks) AS k WHERE k.busy));
    END IF;
    a.head := check_claim_v1(p_member, p_claimant, p_number);
    IF a.head IS NOT NULL THEN
        a.head := a.head || jsonb_build_object('now', coalesce(p_now, instant_v1()));
        IF a.head ? 'again' THEN
            a.head := a.head || jsonb_build_object('starts', starts_again_v1(p_claimant, p_number));
        END IF;
        RETURN NEXT a;
        IF a.head ? 'again' THEN
            RETURN QUERY SELECT * FROM same_runs_v1(p_claimant, p_number);
        END IF;
        RETURN;
    END IF;
    v_now := coalesce(p_now, instant_v1());
    SELECT * INTO d FROM update_dependents_v1(1000, v_now);
    s := ROW(p_most, p_suspects, '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', false, false, d.signals)::selection_v1;
    IF p_ids IS NULL AND (p_settled OR d.moved > 0) THEN  -- this very step may have made jobs ready, and opened gates
        v_picks := pick_queues_v1(p_queues, p_suspects, p_cursors, v_now);
    END IF;
    s := prepare_queues_v1(s, v_picks, p_mosts, p_ids, v_now);
    v_now := coalesce(p_now, instant_v1());
    IF p_ids IS NOT NULL THEN
        IF p_unknown <> '{}' OR EXISTS (SELECT 1 FROM paused_task) THEN
            SELECT k.ids, s.signals || k.signals INTO v_ids, s.signals FROM known_ids_v1(s, p_ids, p_unknown, v_now) AS k;
        END IF;
        s := choose_named_v1(s, v_ids, v_now);
    ELSE
        IF needs_tasks_v1(p_unknown, s.names) THEN
            s := choose_by_tasks_v1(s, p_unknown, p_cursors, p_lanes, p_turns, v_now);
        ELSE
            s := choose_in_queues_v1(s, p_cursors, p_lanes, p_turns, v_now);
        END IF;
        s.exhausted := s.exhausted || ARRAY(SELECT k.name FROM unnest(v_picks) AS k WHERE NOT k.busy AND NOT k.exclusive);
    END IF;
    a.head := jsonb_build_object('signals', to_jsonb(s.signals), 'turns', s.turns, 'seen', v_seen,
                                 'exhausted', to_jsonb(s.exhausted), 'now', v_now);
    IF s.wanted > 0 THEN
        a.head := a.head || jsonb_build_object('wait', wait_for_more_v1(s, v_picks, v_now));
    END IF;
    IF s.taken <> '{}' THEN
        a.head := a.head || jsonb_build_object('starts', starts_v1(s, v_now));
    END IF;
    RETURN NEXT a;
    IF s.taken <> '{}' THEN
        -- Dated after the choice: a run that ended while its gate was counted, and freed the place, ended before these began.
        RETURN QUERY SELECT * FROM start_runs_v1(s, p_member, p_claimant, p_number, coalesce(p_now, instant_v1()));
    END IF;
END $$;
