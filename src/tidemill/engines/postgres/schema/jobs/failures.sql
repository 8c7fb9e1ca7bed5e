-- The record of an attempt that did not complete.

-- A failure that the engine causes: its kind is its fingerprint (model.jobs.fingerprint).
CREATE FUNCTION said_v1(p_kind text, p_message text) RETURNS bytea LANGUAGE sql IMMUTABLE AS $$
    SELECT convert_to(
        json_build_object('kind', p_kind, 'message', p_message, 'fingerprint', p_kind)::text, 'UTF8')
$$;

CREATE FUNCTION append_failure_v1(INOUT j job, p_said bytea, p_attempt integer, p_retry_in bigint, p_now bigint)
LANGUAGE plpgsql AS $$
BEGIN
    j.failures := j.failures + 1;
    INSERT INTO failure (job, number, attempt, claimed_at, started_at, ended_at, retry_in, member, said)
    VALUES (j.id, j.failures, p_attempt, j.claimed_at, j.started_at, p_now, p_retry_in, j.member, p_said);
    IF j.failures > 25 THEN
        DELETE FROM failure WHERE job = j.id AND number = j.failures - 20;
    END IF;
END $$;
