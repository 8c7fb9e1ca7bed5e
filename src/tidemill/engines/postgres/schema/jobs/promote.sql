-- What time alone does to jobs: they expire, and they become due.

-- A ready job that was requested by its id.
CREATE FUNCTION expire_one_v1(p_id bytea, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    j job;
BEGIN
    SELECT * INTO j FROM job WHERE id = p_id AND state::integer = 2 FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN '{}';
    END IF;
    j := append_failure_v1(j, said_v1('expired', 'not started before it expired'), j.attempts, NULL, p_now);
    RETURN to_final_v1(j, 5, p_now);
END $$;

-- `stopped`: before the limit, because of HANDLED_LIMIT.
CREATE FUNCTION expire_v1(p_queue text, p_limit integer, p_now bigint,
                          OUT moved integer, OUT stopped boolean, OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    j job;
    v_handled bigint := 0;
BEGIN
    moved := 0;
    stopped := false;
    signals := '{}';
    FOR j IN SELECT * FROM job WHERE queue = p_queue AND expires_at <= p_now AND state <= 2
             ORDER BY expires_at LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED LOOP
        j := append_failure_v1(j, said_v1('expired', 'not started before it expired'), j.attempts, NULL, p_now);
        signals := signals || to_final_v1(j, 5, p_now);
        moved := moved + 1;
        v_handled := v_handled + CASE WHEN j.on_dead IS NOT NULL THEN length(j.body) ELSE 0 END;
        stopped := v_handled >= 4194304;
        EXIT WHEN stopped;
    END LOOP;
END $$;

-- Move due jobs of one queue to ready in the order of due time, then of their former seq. Under a lock of its
-- own: two promoters could else draw seqs against the order of due times.
CREATE FUNCTION promote_due_v1(q queue, p_limit integer, p_now bigint, OUT moved integer, OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    v_ids bytea[];
BEGIN
    moved := 0;
    signals := '{}';
    IF NOT EXISTS (SELECT 1 FROM job WHERE state = 1 AND queue = q.name AND due_at <= p_now) THEN
        RETURN;
    END IF;
    PERFORM pg_advisory_xact_lock(lock_v1('due', q.name));
    PERFORM pg_current_xact_id();  -- and the queue is read after it: see `reshaped` in claim_v1
    SELECT * INTO q FROM queue WHERE name = q.name;
    WITH due AS (
        SELECT id, nextval('seq') AS seq FROM (
            SELECT id FROM job WHERE state = 1 AND queue = q.name AND due_at <= p_now
            ORDER BY due_at, seq LIMIT p_limit FOR NO KEY UPDATE SKIP LOCKED
        ) AS in_order
    ), changed AS (
        UPDATE job SET state = 2, seq = due.seq, back = false, xid = pg_current_xact_id(), ready_at = p_now,
            lane = group_of_v1(q.keyed, q.tasks, task, key)
        FROM due WHERE job.id = ANY (ARRAY[due.id])
        RETURNING job.id, job.seq, priority, suspect, lane, task, key
    ), announced AS (
        INSERT INTO lane_new (queue, priority, suspect, lane, task, key, first)
        SELECT q.name, priority, suspect, lane, CASE WHEN q.tasks ? task THEN task ELSE '' END,
            CASE WHEN q.keyed THEN key ELSE '' END, min(seq)
        FROM changed WHERE q.laned GROUP BY 2, 3, 4, 5, 6
    )
    SELECT count(*), array_agg(m.id ORDER BY m.seq) INTO moved, v_ids FROM changed AS m;
    signals := named_all_v1(v_ids);
END $$;

-- Announcements of users' transactions and appended counts come into their tables; one process at a time.
CREATE FUNCTION fold_v1() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT pg_try_advisory_xact_lock(lock_v1('fold', '')) THEN
        RETURN;
    END IF;
    IF EXISTS (SELECT 1 FROM queue_new) THEN
        WITH gone AS (
            DELETE FROM queue_new WHERE ctid = ANY (ARRAY(SELECT ctid FROM queue_new LIMIT 10000 FOR UPDATE SKIP LOCKED))
            RETURNING name, created_at
        )
        INSERT INTO queue (name, created_at) SELECT name, min(created_at) FROM gone GROUP BY name ORDER BY name
        ON CONFLICT DO NOTHING;
    END IF;
    IF EXISTS (SELECT 1 FROM finished_new) THEN
        WITH gone AS (
            DELETE FROM finished_new
            WHERE ctid = ANY (ARRAY(SELECT ctid FROM finished_new LIMIT 10000 FOR UPDATE SKIP LOCKED))
            RETURNING queue, minute, completed, failed, dead, cancelled
        )
        INSERT INTO finished (queue, minute, completed, failed, dead, cancelled)
        SELECT queue, minute, sum(completed), sum(failed), sum(dead), sum(cancelled) FROM gone
        GROUP BY queue, minute ORDER BY minute, queue
        ON CONFLICT (minute, queue) DO UPDATE SET completed = finished.completed + excluded.completed,
            failed = finished.failed + excluded.failed, dead = finished.dead + excluded.dead,
            cancelled = finished.cancelled + excluded.cancelled;
    END IF;
END $$;

-- Announcements and freed permits that no claim has folded: nobody claims there, or a gate is full and claims pass the queue.
-- Those of a plain queue are of former options, or of transactions that do not see its present ones: they are deleted. A queue
-- whose lock is taken is left for the next time.
CREATE FUNCTION fold_queues_v1(p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    q queue;
BEGIN
    FOR q IN SELECT * FROM queue ORDER BY name LOOP
        CONTINUE WHEN NOT EXISTS (SELECT 1 FROM lane_new WHERE queue = q.name)
            AND NOT EXISTS (SELECT 1 FROM freed WHERE queue = q.name);
        CONTINUE WHEN NOT try_lock_v1(q.name, q.laned);
        SELECT * INTO q FROM queue WHERE name = q.name AND laned = q.laned;  -- as it is under the lock
        IF q.laned THEN
            PERFORM fold_gates_v1(q, p_now);
            PERFORM fold_lanes_v1(q);
        ELSIF q.name IS NOT NULL THEN
            DELETE FROM freed WHERE queue = q.name;
            DELETE FROM lane_new WHERE ctid = ANY (ARRAY(
                SELECT ctid FROM lane_new WHERE queue = q.name LIMIT 10000 FOR UPDATE SKIP LOCKED));
        END IF;
    END LOOP;
END $$;

-- All queues: expired jobs, children that were left over, due jobs: at most p_limit of each kind.
CREATE FUNCTION promote_v1(p_limit integer, p_now bigint, OUT moved integer, OUT ahead bigint, OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    q queue;
    v_now bigint := coalesce(p_now, instant_v1());
    v_expired integer := 0;
    v_stopped boolean := false;
    v_due integer := 0;
    v_dependents integer;
    v_count integer;
    v_next bigint;
    v_more text[];
BEGIN
    signals := '{}';
    PERFORM fold_v1();
    FOR q IN SELECT * FROM queue ORDER BY name LOOP
        EXIT WHEN v_expired >= p_limit OR v_stopped;
        CONTINUE WHEN NOT EXISTS (SELECT 1 FROM job WHERE queue = q.name AND expires_at <= v_now AND state <= 2);
        SELECT e.moved, e.signals, e.stopped INTO v_count, v_more, v_stopped
        FROM expire_v1(q.name, p_limit - v_expired, v_now) AS e;
        v_expired := v_expired + v_count;
        signals := signals || v_more;
    END LOOP;
    SELECT t.moved, t.signals INTO v_dependents, v_more FROM update_dependents_v1(p_limit, v_now) AS t;
    signals := signals || v_more;
    FOR q IN SELECT * FROM queue ORDER BY name LOOP
        EXIT WHEN v_due >= p_limit;
        SELECT d.moved, d.signals INTO v_count, v_more FROM promote_due_v1(q, p_limit - v_due, v_now) AS d;
        IF v_count > 0 THEN
            v_due := v_due + v_count;
            signals := signals || v_more || ('ready:' || q.name);
        END IF;
    END LOOP;
    PERFORM fold_queues_v1(v_now);  -- last, because it keeps the queues' locks
    moved := v_expired + v_dependents + v_due;
    IF v_stopped OR v_expired >= p_limit OR v_dependents >= p_limit OR v_due >= p_limit THEN
        ahead := 0;
    ELSE
        FOR q IN SELECT * FROM queue LOOP
            v_next := least(v_next, (SELECT due_at FROM job WHERE state = 1 AND queue = q.name ORDER BY due_at LIMIT 1));
        END LOOP;
        ahead := CASE WHEN v_next IS NOT NULL THEN greatest(0, v_next - v_now) END;
    END IF;
END $$;
