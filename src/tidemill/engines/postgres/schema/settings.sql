-- Settings of the functions that are called from outside. They belong to the functions: a session's own would be lost behind
-- PgBouncer. A plan is made once, often while the tables are nearly empty. Every access here is by an index, so the planner
-- is kept from choosing anything else (decision 0009). pg_temp comes last in the search path: `enqueue` has its owner's
-- rights, and a caller's temporary table must not pass for one of ours.
DO $$
DECLARE
    f regprocedure;
BEGIN
    FOR f IN
        SELECT p.oid::regprocedure FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE n.nspname = current_schema() AND p.proname = ANY (ARRAY[
            'enqueue_v1', 'enqueue_here_v1', 'enqueue_unique_v1', 'enqueue_unique_here_v1', 'claim_plain_v1', 'settle_v1', 'release_v1', 'write_v1', 'cancel_v1',
            'replay_v1', 'run_now_v1', 'drop_v1', 'watch_v1', 'promote_v1', 'prune_v1', 'change_layers_v1', 'existing_queue_v1',
            'pause_v1', 'resume_v1', 'pause_task_v1', 'resume_task_v1', 'heartbeat_v1', 'leave_v1', 'retire_v1', 'reclaim_v1', 'put_schedules_v1', 'pause_schedule_v1',
            'retire_schedule_v1', 'remove_schedule_v1', 'fire_v1', 'acquire_v1', 'late_commits_v1', 'scan_behind_v1',
            'move_strays_v1', 'identity_v1', 'check_identity_v1', 'complete_here_v1', 'fates_v1', 'sample_v1', 'oldest_ready_v1', 'enqueue'])
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_catalog, pg_temp', f, current_schema());
        EXECUTE format('ALTER FUNCTION %s SET jit = off', f);
        EXECUTE format('ALTER FUNCTION %s SET plan_cache_mode = force_generic_plan', f);
        EXECUTE format('ALTER FUNCTION %s SET enable_seqscan = off', f);
        EXECUTE format('ALTER FUNCTION %s SET enable_bitmapscan = off', f);
        EXECUTE format('ALTER FUNCTION %s SET enable_hashjoin = off', f);
        EXECUTE format('ALTER FUNCTION %s SET enable_mergejoin = off', f);
        EXECUTE format('ALTER FUNCTION %s SET enable_sort = off', f);
    END LOOP;
    -- A call that waits for another one that is storing the same key holds up the calls behind it.
    FOR f IN
        SELECT p.oid::regprocedure FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
        WHERE n.nspname = current_schema() AND p.proname = 'enqueue_unique_v1'
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET lock_timeout = %L', f, '1s');
    END LOOP;
END $$;
