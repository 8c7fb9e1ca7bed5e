-- Runs that end without an outcome: released for a holder that cannot, or lost with it.

-- Release a job for a worker that cannot do it: the job keeps its position in the lane.
CREATE FUNCTION release_run_v1(j job, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    IF j.cancel_requested THEN
        RETURN to_final_v1(j, 6, p_now);
    END IF;
    RETURN to_ready_v1(j, true, p_now);
END $$;

-- model.crash: after_claimant_lost, after_member_lost. p_verdict: suspect, crash; lost: with its member, which
-- says nothing about it.
CREATE FUNCTION lose_run_v1(j job, p_verdict text, p_said bytea, p_now bigint) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    v_crashed boolean := p_verdict = 'crash' OR (p_verdict = 'lost' AND j.suspect AND j.started_at IS NOT NULL);
BEGIN
    j := append_failure_v1(
        j, coalesce(p_said, said_v1(CASE WHEN v_crashed THEN 'crash' ELSE 'lost' END, 'its member vanished')),
        j.attempts + 1, NULL, p_now);
    j.crashes := j.crashes + v_crashed::integer;
    IF p_verdict = 'lost' THEN
        j.lost_runs := j.lost_runs + 1;
        j.suspect := j.suspect OR j.lost_runs >= 2;
    ELSE
        j.suspect := true;
    END IF;
    IF j.cancel_requested THEN
        RETURN to_final_v1(j, 6, p_now);
    ELSIF j.crashes >= 3 THEN
        RETURN to_final_v1(j, 5, p_now);
    END IF;
    RETURN to_ready_v1(j, true, p_now);
END $$;
