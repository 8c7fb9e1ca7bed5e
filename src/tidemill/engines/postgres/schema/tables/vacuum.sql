-- When the server vacuums which table.

-- The parts of jobs are deleted with them, in bulk. The other tables are small and rewritten often: they are vacuumed by
-- the number of dead rows, whatever their size.
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['failure', 'log', 'checkpoint', 'stat', 'sample'] LOOP
        EXECUTE format('ALTER TABLE %I SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
                        autovacuum_vacuum_cost_delay = 1)', t);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['lane', 'lane_new', 'queue_new', 'freed', 'parked', 'start', 'finished_new', 'finished',
                             'member', 'claimant', 'claimed', 'watch', 'lease', 'queue', 'schedule', 'tally',
                             'group_tally', 'wait', 'ended_parent', 'stat_new',
                             'unique_key', 'unique_period', 'replacing'] LOOP
        EXECUTE format('ALTER TABLE %I SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
                        autovacuum_vacuum_cost_delay = 0)', t);
    END LOOP;
END $$;
