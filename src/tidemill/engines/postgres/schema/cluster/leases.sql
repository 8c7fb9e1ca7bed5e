-- Named leases. Renewal and release are single statements: see sql/locks.sql.

-- The lease's fence and its end; no row: another holds it.
CREATE FUNCTION acquire_v1(p_name text, p_holder text, p_ttl bigint, p_now bigint)
RETURNS TABLE (fence bigint, expires_at bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    v_fence bigint := (fences_v1(1))[1];
    v_now bigint := coalesce(p_now, instant_v1());
BEGIN
    RETURN QUERY
        INSERT INTO lease AS l (name, holder, fence, expires_at) VALUES (p_name, p_holder, v_fence, v_now + p_ttl)
        ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at,
            fence = CASE WHEN l.expires_at > v_now THEN l.fence ELSE excluded.fence END
        WHERE l.holder = p_holder OR l.expires_at <= v_now
        RETURNING l.fence, l.expires_at;
END $$;
