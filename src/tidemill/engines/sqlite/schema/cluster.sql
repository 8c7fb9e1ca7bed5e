-- Who works: members and their claimants; schedules; named leases.

-- Who is there. `steady_since`: since then no heartbeat was late; only a steady member may sweep others.
CREATE TABLE member (
    id           BLOB PRIMARY KEY,
    name         TEXT NOT NULL,
    info         BLOB NOT NULL,
    since        INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    steady_since INTEGER NOT NULL,
    gone_at      INTEGER NOT NULL,              -- heartbeat_at + its lease
    stats        INTEGER NOT NULL DEFAULT 0     -- the number of its last batch of statistics
) STRICT, WITHOUT ROWID;

-- A worker process of a member: it claims under numbers that grow.
CREATE TABLE claimant (
    pk         INTEGER PRIMARY KEY AUTOINCREMENT,
    id         BLOB NOT NULL UNIQUE,
    member     BLOB NOT NULL,
    number     INTEGER NOT NULL DEFAULT 0,      -- of the last claim that took jobs
    retired_at INTEGER
) STRICT;
CREATE INDEX claimant_member ON claimant (member);

-- Schedules (decision 0014). `line`: the ticks that wait for the run under way to end. `kept`: those whose jobs may still be
-- there, if `keep` bounds them.
CREATE TABLE schedule (
    name    TEXT PRIMARY KEY,
    timing  BLOB NOT NULL,
    job     BLOB NOT NULL,
    missed  TEXT NOT NULL,
    overlap TEXT NOT NULL,
    waiting INTEGER NOT NULL,
    keep    INTEGER,                            -- NULL: as the queue says
    source  TEXT NOT NULL,
    declared_at INTEGER NOT NULL,
    next_at INTEGER,
    last_at INTEGER,
    line    BLOB NOT NULL DEFAULT x'5b5d',
    kept    BLOB NOT NULL DEFAULT x'5b5d',
    paused  INTEGER NOT NULL DEFAULT 0,
    retired_at INTEGER,
    version INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

-- Named leases: locks that run out.
CREATE TABLE lease (
    name       TEXT PRIMARY KEY,
    holder     TEXT NOT NULL,
    fence      INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
