-- A job that dies leaves a job of its handler, in the same step (decision 0016).

-- The body of a job as a JSON string; null where it is no text, or encrypted.
CREATE FUNCTION body_text_v1(j job) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE WHEN j.codec = 1 THEN to_json(convert_from(j.body, 'UTF8'))::text ELSE 'null' END;
EXCEPTION WHEN character_not_in_repertoire THEN
    RETURN 'null';
END $$;

-- What the catalogue says of a task. What cannot be read, as a later release may publish it, must not be in the way of a
-- death.
CREATE FUNCTION task_entry_v1(p_name text, OUT queue text, OUT priority smallint, OUT timeout bigint, OUT attempts integer)
LANGUAGE plpgsql AS $$
DECLARE
    v_entry jsonb;
BEGIN
    v_entry := (SELECT convert_from(t.entry, 'UTF8')::jsonb FROM task AS t WHERE t.name = p_name);
    priority := (v_entry ->> 'priority')::smallint;
    timeout := (v_entry ->> 'timeout')::bigint;
    attempts := (v_entry #>> '{retry,attempts}')::integer;
    IF jsonb_typeof(v_entry -> 'queue') = 'string' AND priority BETWEEN 0 AND 10 THEN
        queue := v_entry ->> 'queue';
    ELSE
        priority := NULL;
    END IF;
EXCEPTION WHEN data_exception THEN
    priority := NULL;
    timeout := NULL;
END $$;

-- model.ids.handler_id
CREATE FUNCTION handler_id_v1(p_dead bytea, p_number integer) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_mixed integer := (((get_byte(p_dead, 6) << 8) | get_byte(p_dead, 7)) # p_number) & 4095;
    v_id bytea := set_byte(set_byte(p_dead, 6, 128 | (v_mixed >> 8)), 7, v_mixed & 255);
BEGIN
    RETURN set_byte(set_byte(v_id, 14, get_byte(v_id, 14) # ((p_number >> 12) & 255)), 15, 255 - get_byte(v_id, 15));
END $$;

-- model.death.handler_job: a job that is about to die stores a job of its handler. j has what will be written; its
-- last failure is already stored.
CREATE FUNCTION leave_handler_v1(j job, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    e record;
    v_queue text;
    v_number integer := j.replays;
    v_said text := (SELECT convert_from(said, 'UTF8') FROM failure WHERE job = j.id AND number = j.failures);
    v_body text;
    v_stored bytea[];
BEGIN
    SELECT * INTO e FROM task_entry_v1(j.on_dead);
    v_queue := coalesce(e.queue, j.queue);
    v_body := format('[[{"id":"%s","task":%s,"queue":%s,"key":%s,"attempts":%s,"crashes":%s,"replays":%s,"failure":%s,'
                     || '"body":%s}],{}]', show_id_v1(j.id), to_json(j.task), to_json(j.queue),
        CASE WHEN j.key = '' THEN 'null' ELSE to_json(j.key)::text END, j.attempts, j.crashes, j.replays, v_said,
        body_text_v1(j));
    LOOP
        v_stored := store_v1(
            ARRAY[handler_id_v1(j.id, v_number)], ARRAY[j.on_dead], ARRAY[v_queue],
            ARRAY[coalesce(e.priority, 5::smallint)], ARRAY[convert_to(v_body, 'UTF8')],
            ARRAY[1::smallint], ARRAY[NULL::bytea], ARRAY[j.key], ARRAY[0::bigint], ARRAY[NULL::bigint],
            ARRAY[NULL::bigint], ARRAY[e.timeout], ARRAY[NULL::bytea],
            ARRAY[coalesce(e.attempts, 5)], ARRAY[NULL::text], ARRAY[NULL::text], p_now);
        EXIT WHEN v_stored <> '{}';
        v_number := v_number + 1;  -- that id is taken: the dead job's own was used before
    END LOOP;
    RETURN named_all_v1(v_stored) || ('ready:' || v_queue);
END $$;
