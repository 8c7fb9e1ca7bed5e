-- Naming the jobs that a call moves, while events have listeners.

-- While events have listeners, a call names the jobs that it moves (`Moves` of the protocol) among its signals:
-- '!' and the state, then id, queue, task and reason, each after a newline. A '!' alone stands for one more job that is
-- not named. The setting says how many may still be named. It belongs to this transaction; without it no job is named.
-- A caller requests names by passing its `now` through this function.
CREATE FUNCTION naming_v1(p_now bigint) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('tidemill.naming', '2000', true);
    RETURN p_now;
END $$;

-- Name a job that is about to come into a state; j has what will be written with that. A failure that its row does not
-- count yet was recorded in this step. (json cannot show a NUL.)
CREATE FUNCTION named_v1(j job, p_state integer) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_room text := current_setting('tidemill.naming', true);
    v_said text;
BEGIN
    IF coalesce(v_room, '') = '' THEN
        RETURN '{}';
    ELSIF v_room = '0' THEN
        RETURN '{!}';
    END IF;
    PERFORM set_config('tidemill.naming', (v_room::integer - 1)::text, true);
    IF j.failures > (SELECT failures FROM job WHERE id = j.id) THEN
        SELECT convert_from(said, 'UTF8') INTO v_said FROM failure WHERE job = j.id AND number = j.failures;
    END IF;
    RETURN ARRAY[concat_ws(chr(10), '!' || p_state, encode(j.id, 'hex'), j.queue, j.task,
        CASE WHEN v_said IS NULL OR v_said LIKE '%u0000%' THEN '' ELSE left(
            coalesce(nullif(v_said::json ->> 'error', ''), v_said::json ->> 'kind', 'error') || ': '
            || coalesce(v_said::json ->> 'message', ''), 300) END)];
END $$;

-- The same for several jobs, which have just come into the state that is stored.
CREATE FUNCTION named_all_v1(p_ids bytea[]) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_room text := current_setting('tidemill.naming', true);
    v_count integer := coalesce(cardinality(p_ids), 0);
BEGIN
    IF coalesce(v_room, '') = '' OR v_count = 0 THEN
        RETURN '{}';
    END IF;
    PERFORM set_config('tidemill.naming', greatest(0, v_room::integer - v_count)::text, true);
    RETURN ARRAY(
        SELECT concat_ws(chr(10), '!' || j.state, encode(j.id, 'hex'), j.queue, j.task, '')
        FROM unnest(p_ids[:v_room::integer]) WITH ORDINALITY AS u (id, position) JOIN job AS j ON j.id = ANY (ARRAY[u.id])
        ORDER BY u.position
    ) || array_fill('!'::text, ARRAY[greatest(0, v_count - v_room::integer)]);
END $$;
