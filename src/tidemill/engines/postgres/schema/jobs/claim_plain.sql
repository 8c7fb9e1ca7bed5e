-- The claim that most claims are: of the wanted queues only one may give something, it has no limits and groups, and nothing has
-- to be brought up to date first. It makes six statements where `claim_v1` makes thirty, and saves half the time for one job,
-- a tenth for a hundred. Every other claim goes on in `claim_v1`. Parameters and answer are those of `claim_v1`.
CREATE FUNCTION claim_plain_v1(
    p_member bytea, p_claimant bytea, p_number bigint, p_queues text[], p_mosts integer[], p_most integer,
    p_suspects integer, p_ids bytea[], p_cursors bigint[], p_lanes jsonb, p_turns jsonb, p_unknown text[], p_now bigint,
    p_settled boolean DEFAULT false
) RETURNS SETOF claim_answer_v1 LANGUAGE plpgsql AS $$
DECLARE
    a claim_answer_v1;
    r record;
    v_queue text := p_queues[1];
    v_at integer := 1;             -- its position in the request
    v_most integer;
    v_now bigint;
    v_seen bigint;
    v_opens_at bigint;             -- when time alone opens something in the other queues
    v_exhausted text[] := '{}';    -- other queues in which nothing is ready
    v_taken tid[];
    v_plain boolean := p_ids IS NULL AND p_unknown = '{}' AND p_most > 0 AND cardinality(p_queues) > 0;
BEGIN
    IF v_plain AND cardinality(p_queues) > 1 THEN
        v_seen := (SELECT last_value - (NOT is_called)::integer FROM seq);
        v_now := coalesce(p_now, instant_v1());
        SELECT count(*) FILTER (WHERE k.busy) = 1 AND NOT bool_or(k.busy AND k.exclusive) AS plain,
            min(k.name) FILTER (WHERE k.busy) AS name, min(k.position) FILTER (WHERE k.busy) AS position,
            min(k.opens_at) FILTER (WHERE NOT k.busy) AS opens_at,
            coalesce(array_agg(k.name) FILTER (WHERE NOT k.busy AND NOT k.exclusive), '{}') AS exhausted
        INTO r
        FROM unnest(pick_queues_v1(p_queues, p_suspects, p_cursors, v_now)) AS k;
        v_plain := coalesce(r.plain, false);
        v_queue := r.name;
        v_at := r.position;
        v_opens_at := r.opens_at;
        v_exhausted := r.exhausted;
    END IF;
    v_most := least(p_most, p_mosts[v_at]);
    IF v_plain AND p_settled THEN
        v_plain := try_lock_v1(v_queue, false);
    ELSIF v_plain THEN
        v_plain := EXISTS (SELECT 1 FROM queue WHERE name = v_queue AND NOT laned AND stale IS NULL AND reshaped IS NULL);
        IF v_plain THEN
            PERFORM pg_advisory_xact_lock_shared(lock_v1('member', encode(p_member, 'hex'))),
                    pg_advisory_xact_lock(lock_v1('claimant', encode(p_claimant, 'hex'))),
                    pg_advisory_xact_lock_shared(lock_v1('queue', v_queue));
        END IF;
    END IF;
    IF v_plain THEN
        v_now := coalesce(p_now, instant_v1());
        SELECT m.name, c.id IS NULL AS new, (SELECT last_value - (NOT is_called)::integer FROM seq) AS seen,
            NOT q.laned AND q.stale IS NULL AND q.reshaped IS NULL AND q.paused_at IS NULL
            AND (c.id IS NULL OR (c.retired_at IS NULL AND c.member = p_member AND last_claim_v1(c.id) < p_number))
            AND NOT EXISTS (SELECT 1 FROM ended_parent)
            AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.queue = q.name AND j.expires_at <= v_now AND j.state <= 2)
            AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.state = 1 AND j.queue = q.name AND j.due_at <= v_now)
            AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.back AND j.queue = q.name)
            AND NOT EXISTS (SELECT 1 FROM job AS j WHERE j.aside AND j.queue = q.name)
            AND NOT EXISTS (SELECT 1 FROM paused_task)
            AND (p_suspects = 0
                 OR NOT EXISTS (SELECT 1 FROM job AS j WHERE j.suspect AND j.state::integer = 2 AND j.queue = q.name)) AS plain
        INTO r
        FROM member AS m JOIN queue AS q ON q.name = v_queue LEFT JOIN claimant AS c ON c.id = p_claimant
        WHERE m.id = p_member;
        v_plain := coalesce(r.plain, false);
    END IF;
    IF NOT v_plain THEN
        RETURN QUERY SELECT * FROM claim_v1(
            p_member, p_claimant, p_number, p_queues, p_mosts, p_most, p_suspects, p_ids, p_cursors, p_lanes, p_turns,
            p_unknown, p_now, p_settled);
        RETURN;
    END IF;
    v_now := coalesce(p_now, instant_v1());
    v_taken := choose_from_cursors_v1(v_queue, v_most, p_cursors[22 * v_at - 21 : 22 * v_at], '{}', v_now);
    IF cardinality(v_taken) < v_most THEN
        v_exhausted := v_exhausted || v_queue;
    END IF;
    a.head := jsonb_build_object(
        'signals', '[]'::jsonb, 'turns', '{}'::jsonb, 'seen', coalesce(v_seen, r.seen),
        'now', v_now, 'exhausted', to_jsonb(v_exhausted));
    IF cardinality(v_taken) < p_most THEN
        v_opens_at := least(v_opens_at, (
            SELECT j.due_at FROM job AS j WHERE j.state = 1 AND j.queue = v_queue ORDER BY j.due_at LIMIT 1));
        a.head := a.head || jsonb_build_object('wait', CASE WHEN v_opens_at IS NOT NULL THEN greatest(0, v_opens_at - v_now) END);
    END IF;
    RETURN NEXT a;
    IF v_taken = '{}' THEN
        RETURN;
    END IF;
    IF r.new THEN
        INSERT INTO claimant (id, member) VALUES (p_claimant, p_member);
    END IF;
    INSERT INTO claimed (claimant, number) VALUES (p_claimant, p_number);
    IF EXISTS (SELECT 1 FROM unique_key WHERE at_start) THEN
        PERFORM free_keys_at_start_v1(v_taken);
    END IF;
    RETURN QUERY
        UPDATE job AS j SET state = 3, token = t.fence, fence = t.fence, claimant = p_claimant, claim_no = p_number,
            member = r.name, claimed_at = v_now, started_at = NULL, back = false, gated = false
        FROM unnest(v_taken, fences_v1(cardinality(v_taken))) AS t (at, fence)
        WHERE j.ctid = t.at AND j.state::integer = 2
        RETURNING NULL::jsonb, j.id, j.fence, j.seq, j.task, j.queue, j.priority, j.attempts + 1, j.max_attempts,
            j.codec, j.body, j.headers, nullif(j.key, ''), j.timeout, j.retry, j.created_at, j.ready_at, j.crashes,
            j.suspect, false, j.on_dead, j.schedule, j.snoozes, j.lane;
END $$;
