-- The audit log: what people changed.

CREATE FUNCTION show_id_v1(p_id bytea) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT encode(p_id, 'hex')::uuid::text
$$;

CREATE FUNCTION audit_v1(p_by text, p_action text, p_target text, p_detail text, p_now bigint) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO audit (at, by, action, target, detail)
    SELECT p_now, p_by, p_action, p_target, p_detail WHERE p_by <> ''
$$;

-- One entry for a call about several jobs.
CREATE FUNCTION audit_jobs_v1(p_by text, p_action text, p_ids bytea[], p_now bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(p_ids) > 0 THEN
        PERFORM audit_v1(p_by, p_action, show_id_v1(p_ids[1])
            || CASE WHEN cardinality(p_ids) > 1 THEN ' and ' || (cardinality(p_ids) - 1) || ' more' ELSE '' END,
            '', p_now);
    END IF;
END $$;
