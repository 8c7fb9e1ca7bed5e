-- Jobs that wait for other jobs: children wait, parents end.

-- A child waits for no parent any more.
CREATE FUNCTION unblock_v1(j job, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    IF j.due_at > p_now THEN
        RETURN to_scheduled_v1(j, j.due_at);
    END IF;
    RETURN to_ready_v1(j, false, p_now);
END $$;

-- A child's parent did not complete.
CREATE FUNCTION cancel_child_v1(j job, p_parent text, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    j := append_failure_v1(j, said_v1('parent', 'a parent did not complete: ' || p_parent), j.attempts, NULL, p_now);
    RETURN to_final_v1(j, 6, p_now);
END $$;

-- Update up to p_limit children of parents that ended, the oldest entry first: unblock them, cancel them, or let them go on
-- waiting. It stops at a child or an entry that another transaction has locked: the next step goes on there.
CREATE FUNCTION update_dependents_v1(p_limit integer, p_now bigint, OUT moved integer, OUT unfinished boolean, OUT signals text[])
LANGUAGE plpgsql AS $$
DECLARE
    r ended_parent;
    j job;
    v_child bytea;
    v_children bytea[];
BEGIN
    moved := 0;
    unfinished := false;
    signals := '{}';
    LOOP
        SELECT * INTO r FROM ended_parent ORDER BY pk LIMIT 1;
        EXIT WHEN NOT FOUND;
        unfinished := true;
        EXIT WHEN moved >= p_limit;
        SELECT * INTO r FROM ended_parent WHERE pk = r.pk FOR UPDATE SKIP LOCKED;
        EXIT WHEN NOT FOUND;
        v_children := ARRAY(
            SELECT child FROM wait WHERE parent = r.parent AND seen < r.pk
            ORDER BY seen, born LIMIT p_limit - moved
        );
        IF v_children = '{}' THEN
            DELETE FROM ended_parent WHERE pk = r.pk;
            unfinished := false;
            CONTINUE;
        END IF;
        FOREACH v_child IN ARRAY v_children LOOP
            SELECT * INTO j FROM job WHERE id = v_child FOR NO KEY UPDATE SKIP LOCKED;
            IF NOT FOUND THEN
                RETURN;
            END IF;
            moved := moved + 1;
            IF j.state <> 0 THEN
                DELETE FROM wait WHERE parent = r.parent AND child = v_child;
            ELSIF r.state = 4 OR (r.state <> -1 AND j.parent_died = 'run') THEN
                DELETE FROM wait WHERE parent = r.parent AND child = v_child;
                IF j.waits_for = 1 THEN
                    signals := signals || unblock_v1(j, p_now);
                ELSE
                    UPDATE job SET waits_for = waits_for - 1 WHERE id = v_child;
                END IF;
            ELSIF r.state = -1 OR j.parent_died = 'cancel' THEN
                signals := signals || cancel_child_v1(
                    j, CASE WHEN r.state = -1 THEN 'which was deleted' ELSE show_id_v1(r.parent) END, p_now);
            ELSE
                UPDATE wait SET seen = r.pk WHERE parent = r.parent AND child = v_child;
            END IF;
        END LOOP;
    END LOOP;
END $$;

-- A new, blocked child waits for those of its parents that have not completed. The parents are locked by the caller, so a
-- settle of one either sees the wait or is seen here. A ready parent is marked `back`: a claim may have passed it while it
-- was locked.
CREATE FUNCTION wait_for_v1(p_child bytea, p_parents bytea[], p_parent_died text, p_now bigint) RETURNS text[]
LANGUAGE plpgsql AS $$
DECLARE
    j job;
    r record;
    v_waits integer := 0;
    v_lost bytea;
BEGIN
    SELECT * INTO j FROM job WHERE id = p_child;
    FOR r IN SELECT p.id, p.state, p.has_children, p.back FROM (SELECT DISTINCT u.id FROM unnest(p_parents) AS u (id)) AS n
             JOIN job AS p ON p.id = ANY (ARRAY[n.id]) LOOP
        IF r.state IN (5, 6) AND p_parent_died = 'cancel' THEN
            v_lost := r.id;
        ELSIF r.state <> 4 AND NOT (r.state IN (5, 6) AND p_parent_died = 'run') THEN
            INSERT INTO wait (parent, child, born) VALUES (r.id, p_child, j.born);
            v_waits := v_waits + 1;
            IF NOT r.has_children OR (r.state = 2 AND NOT r.back) THEN
                UPDATE job SET has_children = true, back = state = 2 WHERE id = r.id;
            END IF;
        END IF;
    END LOOP;
    j.waits_for := v_waits;
    UPDATE job SET waits_for = v_waits WHERE id = p_child;
    IF v_lost IS NOT NULL THEN
        RETURN cancel_child_v1(j, show_id_v1(v_lost), p_now);
    ELSIF v_waits = 0 THEN
        RETURN unblock_v1(j, p_now);
    END IF;
    RETURN '{}';
END $$;
