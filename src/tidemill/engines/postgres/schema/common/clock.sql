-- The clock and the fences. Every function below takes `p_now`: NULL means this clock.

CREATE FUNCTION instant_v1() RETURNS bigint LANGUAGE sql VOLATILE AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
$$;

-- A draw that lies more than a second behind the clock is thrown away and the sequence set to the clock,
-- so that fences do not repeat after a restore. It is set only while it lags, so it never goes back.
CREATE FUNCTION fences_v1(p_count integer) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    v_clock bigint := instant_v1();
BEGIN
    IF nextval('fence') < v_clock - 1000000 THEN
        PERFORM pg_advisory_xact_lock(lock_v1('fence', ''));  -- once a second; nothing is waited for after it
        IF (SELECT last_value FROM fence) < v_clock - 1000000 THEN
            PERFORM setval('fence', v_clock);
        END IF;
    END IF;
    RETURN ARRAY(SELECT nextval('fence') FROM generate_series(1, p_count));
END $$;
