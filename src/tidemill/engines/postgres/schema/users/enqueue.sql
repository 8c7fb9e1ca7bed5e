-- Enqueue from any language. `enqueue` is the one function that users call, and the one without a version in its name.

-- A UUIDv7: 48 bits of Unix milliseconds, the rest random.
CREATE FUNCTION new_id_v1() RETURNS bytea LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    v_id bytea := substring(int8send(instant_v1() / 1000) FROM 3) || substring(uuid_send(gen_random_uuid()) FROM 7);
BEGIN
    RETURN set_byte(v_id, 6, get_byte(v_id, 6) & 15 | 112);
END $$;

-- In how many letters two words differ.
CREATE FUNCTION distance_v1(p_one text, p_other text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_before integer[] := ARRAY(SELECT n FROM generate_series(0, length(p_other)) AS n);
    v_row integer[];
BEGIN
    FOR i IN 1 .. length(p_one) LOOP
        v_row := ARRAY[i];
        FOR k IN 1 .. length(p_other) LOOP
            v_row := v_row || least(
                v_row[k] + 1, v_before[k + 1] + 1,
                v_before[k] + (substr(p_one, i, 1) <> substr(p_other, k, 1))::integer);
        END LOOP;
        v_before := v_row;
    END LOOP;
    RETURN v_before[length(p_other) + 1];
END $$;

-- A hint for a name that is not known: the nearest one, or nothing.
CREATE FUNCTION nearest_v1(p_name text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT coalesce((
        SELECT '; did you mean ''' || n.name || '''?' FROM (
            SELECT t.name, distance_v1(p_name, t.name) AS apart FROM (SELECT name FROM task LIMIT 1000) AS t
        ) AS n
        WHERE n.apart <= greatest(length(n.name), length(p_name)) / 2 ORDER BY n.apart, n.name LIMIT 1
    ), '')
$$;

-- Refuse arguments that cannot fit what the catalogue says of the task; returns its key. Types are for the worker
-- to check.
CREATE FUNCTION key_of_call_v1(p_entry jsonb, p_args jsonb, p_kwargs jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_schema jsonb := convert_from(decode(p_entry ->> 'schema', 'base64'), 'UTF8')::jsonb;
    v_positional text[] := ARRAY(SELECT jsonb_array_elements_text(v_schema -> 'positional'));
    v_known text[] := ARRAY(SELECT jsonb_object_keys(v_schema -> 'properties'));
    v_given jsonb;
    v_missing text;
    v_value jsonb;
    v_name text := p_entry ->> 'name';
BEGIN
    IF v_schema IS NULL THEN
        RETURN NULL;
    END IF;
    v_given := coalesce((
        SELECT jsonb_object_agg(p.name, p_args -> (p.position::integer - 1))
        FROM unnest(v_positional) WITH ORDINALITY AS p (name, position) WHERE p.position <= jsonb_array_length(p_args)
    ), '{}') || p_kwargs;
    SELECT string_agg(r.name, ', ') INTO v_missing
    FROM jsonb_array_elements_text(v_schema -> 'required') AS r (name) WHERE NOT v_given ? r.name;
    IF v_missing IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = v_name || ': missing ' || v_missing;
    END IF;
    IF p_kwargs ?| v_positional[:jsonb_array_length(p_args)] OR (
        NOT coalesce((v_schema ->> 'more')::boolean, false) AND (
            jsonb_array_length(p_args) > cardinality(v_positional)
            OR EXISTS (SELECT 1 FROM jsonb_object_keys(p_kwargs) AS k (name) WHERE k.name <> ALL (v_known)))
    ) THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = format(
            '%s takes (%s); got %s in order and %s by name', v_name, array_to_string(
                v_positional || ARRAY(SELECT k FROM unnest(v_known) AS k WHERE k <> ALL (v_positional)), ', '),
            jsonb_array_length(p_args),
            coalesce((SELECT string_agg(k.name, ', ') FROM jsonb_object_keys(p_kwargs) AS k (name)), 'none'));
    END IF;
    v_value := v_given #> string_to_array(p_entry ->> 'key', '.');
    RETURN CASE jsonb_typeof(v_value)
        WHEN 'null' THEN NULL
        WHEN 'boolean' THEN initcap(v_value #>> '{}')  -- as Python writes it
        ELSE left(v_value #>> '{}', 200)
    END;
END $$;

-- The arguments of a call by the names of their parameters, and the rest of those in order: the same for calls that
-- are the same. The members of a set are sorted, if the set is a whole argument. NULL: a call that has no such form.
CREATE FUNCTION named_v1(p_entry jsonb, p_args jsonb, p_kwargs jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    v_schema jsonb := convert_from(decode(p_entry ->> 'schema', 'base64'), 'UTF8')::jsonb;
    v_positional text[] := ARRAY(SELECT jsonb_array_elements_text(v_schema -> 'positional'));
    v_sets text[] := ARRAY(
        SELECT p.name FROM jsonb_each(v_schema -> 'properties') AS p (name, type)
        WHERE p.type @> '{"uniqueItems": true}' OR p.type -> 'anyOf' @> '[{"uniqueItems": true}]'
    );
    v_named jsonb;
    v_more jsonb;
BEGIN
    IF p_kwargs ?| v_positional[:jsonb_array_length(p_args)] THEN
        RETURN NULL;
    END IF;
    SELECT jsonb_object_agg(p.name, p_args -> (p.position::integer - 1)) INTO v_named
    FROM unnest(v_positional) WITH ORDINALITY AS p (name, position) WHERE p.position <= jsonb_array_length(p_args);
    v_named := coalesce(v_named, '{}') || p_kwargs;
    v_named := v_named || coalesce((
        SELECT jsonb_object_agg(
            s.name, ARRAY(SELECT DISTINCT m FROM jsonb_array_elements(v_named -> s.name) AS m ORDER BY m))
        FROM unnest(v_sets) AS s (name) WHERE jsonb_typeof(v_named -> s.name) = 'array'
    ), '{}');
    SELECT jsonb_agg(a.value ORDER BY a.position) INTO v_more
    FROM jsonb_array_elements(p_args) WITH ORDINALITY AS a (value, position)
    WHERE a.position > cardinality(v_positional);
    RETURN jsonb_build_array(v_named, v_more);
END $$;

-- Whether these are the arguments of a job that is there. Numbers are compared by value, and so is every other JSON.
CREATE FUNCTION same_arguments_v1(p_entry jsonb, p_codec smallint, p_body bytea, p_args jsonb, p_kwargs jsonb)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    v_body jsonb;
BEGIN
    IF p_codec <> 1 THEN
        RETURN false;
    END IF;
    v_body := convert_from(p_body, 'UTF8')::jsonb;
    RETURN coalesce(named_v1(p_entry, v_body -> 0, v_body -> 1) = named_v1(p_entry, p_args, p_kwargs), false);
EXCEPTION WHEN data_exception OR program_limit_exceeded THEN  -- no jsonb can hold it, so it is not the same as one
    RETURN false;
END $$;

-- 23505 if the job that has this id is of another task or has other arguments. Arguments that are no longer kept count
-- as the same, as they do in Python (decision 0018).
CREATE FUNCTION refuse_other_v1(p_id bytea, p_task text, p_entry jsonb, p_args jsonb, p_kwargs jsonb)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_task text;
    v_codec smallint;
    v_body bytea;
    v_what text;
BEGIN
    SELECT j.task, j.codec, j.body INTO v_task, v_codec, v_body FROM job AS j WHERE j.id = p_id;
    IF v_task <> p_task THEN
        v_what := format('of the task %s, not %s', v_task, p_task);
    ELSIF v_body IS NOT NULL AND NOT same_arguments_v1(p_entry, v_codec, v_body, p_args, p_kwargs) THEN
        v_what := format('with other arguments for %s', v_task);
    ELSE
        RETURN;
    END IF;
    RAISE EXCEPTION USING ERRCODE = '23505', MESSAGE = format(
        'the job %s is there already, %s: it was left as it is, and this call was not stored; give each call an id of '
        'its own', show_id_v1(p_id), v_what);
END $$;

-- A length of time in microseconds, months counted from now.
CREATE FUNCTION span_v1(p_name text, p_length interval, p_least bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_span bigint := round(extract(epoch FROM (now() + p_length) - now()) * 1000000);
BEGIN
    IF v_span < p_least OR v_span > 3153600000000000 THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = format(
            '%s must lie between %s and 100 years, not %s', p_name, p_least || ' us', p_length);
    END IF;
    RETURN v_span;
END $$;

CREATE FUNCTION enqueue(
    task text, args jsonb DEFAULT '[]', kwargs jsonb DEFAULT '{}', queue text DEFAULT NULL,
    priority integer DEFAULT NULL, delay interval DEFAULT NULL, at timestamptz DEFAULT NULL, key text DEFAULT NULL,
    timeout interval DEFAULT NULL, expires interval DEFAULT NULL, tags text[] DEFAULT NULL, id uuid DEFAULT NULL
) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    v_entry jsonb;
    v_options jsonb;
    v_queue text;
    v_priority integer;
    v_key text;
    v_timeout bigint;
    v_attempts integer;
    v_body bytea;
    v_id bytea := coalesce(uuid_send(enqueue.id), new_id_v1());
    v_stored bytea[];
BEGIN
    IF enqueue.task IS NULL OR enqueue.task !~ '^[^[:space:][:cntrl:]]{1,200}$' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = format(
            '%L is not a task: up to 200 characters without spaces and control characters', enqueue.task);
    ELSIF jsonb_typeof(enqueue.args) IS DISTINCT FROM 'array' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'args is a JSON array: ''["a@b.c", 3]''';
    ELSIF jsonb_typeof(enqueue.kwargs) IS DISTINCT FROM 'object' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'kwargs is a JSON object: ''{"subject": "hi"}''';
    ELSIF enqueue.at IS NOT NULL AND enqueue.delay IS NOT NULL THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'give at or delay, not both';
    ELSIF enqueue.at < 'epoch' OR enqueue.at > to_timestamp(9000000000) THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = 'at lies between 1970 and 2255';
    END IF;
    SELECT convert_from(t.entry, 'UTF8')::jsonb INTO v_entry FROM task AS t WHERE t.name = enqueue.task;
    v_queue := coalesce(enqueue.queue, v_entry ->> 'queue');
    IF v_queue IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = '42704', MESSAGE = format(
            'no task %L is known to any worker%s (to enqueue it all the same, give queue)', enqueue.task,
            nearest_v1(enqueue.task));
    ELSIF v_queue !~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$' THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = format(
            '%L is not a queue: a letter or digit, then up to 99 letters, digits or one of _.:-', v_queue);
    END IF;
    v_priority := coalesce(enqueue.priority, (v_entry ->> 'priority')::integer, 5);
    IF v_priority NOT BETWEEN 0 AND 10 THEN
        RAISE EXCEPTION USING ERRCODE = '22023', MESSAGE = format(
            'a priority lies between 0 (first) and 10 (last), not %s', v_priority);
    END IF;
    v_key := coalesce(enqueue.key, key_of_call_v1(v_entry, enqueue.args, enqueue.kwargs), '');
    IF length(v_key) > 200 OR v_key ~ '[\u0001-\u001f]' THEN
        RAISE EXCEPTION USING ERRCODE = '22023',
            MESSAGE = 'a key has at most 200 characters and no control characters';
    END IF;
    v_body := convert_to('[' || enqueue.args::text || ',' || enqueue.kwargs::text || ']', 'UTF8');
    IF length(v_body) > 1048576 THEN
        RAISE EXCEPTION USING ERRCODE = '54000', MESSAGE = format(
            'the arguments of %s take %s bytes; the limit is 1048576: store the data elsewhere and pass a reference',
            enqueue.task, length(v_body));
    END IF;
    SELECT convert_from(q.options, 'UTF8')::jsonb INTO v_options FROM queue AS q WHERE q.name = v_queue;
    v_timeout := coalesce(
        span_v1('timeout', enqueue.timeout, 1), (v_entry ->> 'timeout')::bigint,
        ((v_options ->> 'timeout')::numeric * 1000000)::bigint);
    v_attempts := coalesce(
        (v_entry #>> '{retry,attempts}')::integer, (v_options #>> '{retry,attempts}')::integer, 5);
    v_stored := store_v1(
        ARRAY[v_id], ARRAY[enqueue.task], ARRAY[v_queue], ARRAY[v_priority::smallint], ARRAY[v_body],
        ARRAY[1::smallint],
        ARRAY[CASE WHEN cardinality(enqueue.tags) > 0
              THEN convert_to(json_build_object('tags', enqueue.tags)::text, 'UTF8') END],
        ARRAY[v_key], ARRAY[coalesce(span_v1('delay', enqueue.delay, 0), 0)],
        ARRAY[(extract(epoch FROM enqueue.at) * 1000000)::bigint], ARRAY[span_v1('expires', enqueue.expires, 1)],
        ARRAY[v_timeout], ARRAY[NULL::bytea], ARRAY[v_attempts], ARRAY[v_entry ->> 'on_dead'], ARRAY[NULL::text],
        instant_v1(), true);
    IF v_stored = '{}' AND enqueue.id IS NOT NULL THEN
        PERFORM refuse_other_v1(v_id, enqueue.task, v_entry, enqueue.args, enqueue.kwargs);
    END IF;
    PERFORM pg_notify('tidemill:' || current_schema(), to_json(ARRAY['ready:' || v_queue])::text);
    RETURN encode(v_id, 'hex')::uuid;
END $$;

COMMENT ON FUNCTION enqueue IS
    'Store a job of Tidemill in this transaction; returns its id. Defaults come from the tasks that workers publish.';
