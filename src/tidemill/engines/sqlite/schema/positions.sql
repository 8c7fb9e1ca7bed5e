-- Where jobs are: the orders. A job that does not run is in exactly one of them, written in the same step as its state:
-- blocked in `blocked`, scheduled in `due`, ready in `ready`, ended in `ended` (or in `grave`, if only a tombstone is left).
-- `dead` and `expiring` are second orders of some of them.

-- The order of ready jobs: ranges of seqs. A job's seq is its pk + `ahead`. kind: as of a lane.
CREATE TABLE ready (
    queue    INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    kind     INTEGER NOT NULL,
    lane     TEXT NOT NULL,
    last     INTEGER NOT NULL,
    first    INTEGER NOT NULL,
    ahead    INTEGER NOT NULL,
    PRIMARY KEY (queue, priority, kind, lane, last)
) STRICT, WITHOUT ROWID;

-- The order of scheduled jobs.
CREATE TABLE due (
    queue  INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    pk     INTEGER NOT NULL,
    PRIMARY KEY (queue, due_at, seq)
) STRICT, WITHOUT ROWID;

-- Jobs that wait for others.
CREATE TABLE blocked (
    queue INTEGER NOT NULL,
    pk    INTEGER NOT NULL,
    PRIMARY KEY (queue, pk)
) STRICT, WITHOUT ROWID;

-- The order of ended jobs that are kept: ranges of pks.
CREATE TABLE ended (
    queue    INTEGER NOT NULL,
    state    INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    last     INTEGER NOT NULL,
    first    INTEGER NOT NULL,
    PRIMARY KEY (queue, state, ended_at, last)
) STRICT, WITHOUT ROWID;

-- The dead letters among them: by task, and by group (decision 0027).
CREATE TABLE dead (
    queue       INTEGER NOT NULL,
    task        TEXT NOT NULL,
    ended_at    INTEGER NOT NULL,
    pk          INTEGER NOT NULL,
    fingerprint TEXT NOT NULL,                  -- of its last failure
    PRIMARY KEY (queue, task, ended_at, pk)
) STRICT, WITHOUT ROWID;
CREATE INDEX dead_group ON dead (queue, task, fingerprint, ended_at, pk);

-- Tombstones.
CREATE TABLE grave (
    ended_at INTEGER NOT NULL,
    pk       INTEGER NOT NULL,
    PRIMARY KEY (ended_at, pk)
) STRICT, WITHOUT ROWID;

-- Jobs that have not started and will expire.
CREATE TABLE expiring (
    expires_at INTEGER NOT NULL,
    pk         INTEGER NOT NULL,
    PRIMARY KEY (expires_at, pk)
) STRICT, WITHOUT ROWID;
