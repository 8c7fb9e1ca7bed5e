-- What one namespace is: one file. This file is the first of schema version 1.
--
-- For every table here: times and lengths of time are microseconds. A state is its position in model.job.STATES:
-- 0 blocked, 1 scheduled, 2 ready, 3 running, 4 completed, 5 dead, 6 cancelled. All writes go through BEGIN IMMEDIATE, so a
-- statement may rely on what it has read.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row.
--
-- `seq` orders jobs, and a new job's seq is its pk. The next seq is above this one and above every pk: so no pk comes
-- twice. A new job's own row says which seq it drew. This column says it for a seq that no job has: it was drawn for
-- something else, or its job is deleted.
--
-- `config` grows with every change of a queue or of a task's pause: processes then read them again. `options` grows when
-- the options in
-- force of a queue change: heartbeats answer it.
CREATE TABLE counter (
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    seq       INTEGER NOT NULL,
    fence     INTEGER NOT NULL,
    heartbeat INTEGER NOT NULL,
    config    INTEGER NOT NULL,
    options   INTEGER NOT NULL
) STRICT;
INSERT INTO counter VALUES (1, 0, 0, 0, 0, 0);

-- What people changed.
CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    by     TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT ''
) STRICT;
