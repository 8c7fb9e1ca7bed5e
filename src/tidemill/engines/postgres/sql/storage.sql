-- What the tables take, and who keeps dead rows from being removed.

-- name: parts
-- $1 the schema. Sizes include indexes and large values; rows are the server's own estimates.
SELECT c.relname, pg_total_relation_size(c.oid), pg_stat_get_live_tuples(c.oid), pg_stat_get_dead_tuples(c.oid)
FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = $1::text AND c.relkind = 'r' ORDER BY 2 DESC, 1;

-- name: holders
-- Snapshots of sessions of this database, and running transactions of any: a snapshot taken anywhere cannot be newer
-- than the oldest of those. Without rights on a session its state and age are NULL, its transactions are not. An
-- autovacuum, which has no user, does not hold back others.
SELECT * FROM (
    SELECT 'transaction' AS kind, pid::text AS name,
        (extract(epoch FROM clock_timestamp() - xact_start) * 1000000)::bigint AS age,
        greatest(age(backend_xmin), age(backend_xid)) AS behind, NULL::bigint AS bytes, coalesce(state, '') AS state,
        coalesce(application_name, '') AS application, coalesce(usename::text, '') AS who
    FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND usesysid IS NOT NULL
      AND (backend_xid IS NOT NULL
           OR (backend_xmin IS NOT NULL AND (datname IS NULL OR datname = current_database())))
    UNION ALL
    SELECT 'prepared', gid, (extract(epoch FROM clock_timestamp() - prepared) * 1000000)::bigint, age(transaction), NULL,
        'prepared', '', owner::text
    FROM pg_prepared_xacts
    UNION ALL
    SELECT 'slot', slot_name::text, NULL, age(xmin),
        CASE WHEN NOT pg_is_in_recovery() THEN pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)::bigint END,
        CASE WHEN active THEN 'in use' ELSE 'not in use' END, coalesce(plugin::text, ''), ''
    FROM pg_replication_slots
) AS h
ORDER BY behind DESC NULLS LAST, age DESC NULLS LAST LIMIT 20;

-- name: cleared
SELECT current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean;
