-- What one namespace is: one schema of the database. This file is the first of schema version 1.
--
-- For every table here: times and lengths of time are microseconds. A state is its position in model.job.STATES:
-- 0 blocked, 1 scheduled, 2 ready, 3 running, 4 completed, 5 dead, 6 cancelled. A text that is ordered or compared is
-- COLLATE "C": by code point, as Python compares.

CREATE TABLE meta (
    name  text PRIMARY KEY,
    value text NOT NULL
);

-- A copy of a database has another oid, a restored one mostly; another namespace has another identity.
INSERT INTO meta (name, value) VALUES ('identity', gen_random_uuid()::text);

-- The sequences of seqs, fences and heartbeats. CACHE 1, the default: a cached block would break the order between sessions.
CREATE SEQUENCE seq AS bigint;
CREATE SEQUENCE fence AS bigint;
CREATE SEQUENCE heartbeat AS bigint;

-- What people changed.
CREATE TABLE audit (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     bigint NOT NULL,
    by     text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    detail text NOT NULL DEFAULT ''
);
