-- oldest code: 1
-- The whole state of one namespace in one file. Times and spans are microseconds. States are the
-- positions in model.job.STATES: 0 blocked, 1 scheduled, 2 ready, 3 running, 4 completed, 5 dead,
-- 6 cancelled. All writes go through BEGIN IMMEDIATE, so a statement may rely on what it has read.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row. seq orders jobs and gives each its first pk, so that no pk ever comes twice; config grows
-- with every change of a queue and tells the processes to read the queues again.
CREATE TABLE counter (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    seq    INTEGER NOT NULL,
    fence  INTEGER NOT NULL,
    beat   INTEGER NOT NULL,
    config INTEGER NOT NULL
) STRICT;
INSERT INTO counter VALUES (1, 0, 0, 0, 0);

CREATE TABLE queue (
    pk         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    options    BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    paused_at  INTEGER,
    paused_by  TEXT NOT NULL DEFAULT '',
    paused_why TEXT NOT NULL DEFAULT ''
) STRICT;

CREATE TABLE job (
    pk            INTEGER PRIMARY KEY,
    id            BLOB NOT NULL UNIQUE,
    queue         INTEGER NOT NULL,
    priority      INTEGER NOT NULL,
    suspect       INTEGER NOT NULL DEFAULT 0,
    lane          TEXT NOT NULL DEFAULT '',     -- the group of its lane
    seq           INTEGER NOT NULL,
    state         INTEGER NOT NULL,
    form          INTEGER NOT NULL DEFAULT 0,   -- 0 whole, 1 body and result dropped, 2 tombstone
    task          TEXT NOT NULL,
    key           TEXT NOT NULL,                -- '' for none
    attempts      INTEGER NOT NULL DEFAULT 0,
    max_attempts  INTEGER NOT NULL,
    crashes       INTEGER NOT NULL DEFAULT 0,
    losses        INTEGER NOT NULL DEFAULT 0,
    failures      INTEGER NOT NULL DEFAULT 0,   -- how many there were; the kept ones are in failure
    replays       INTEGER NOT NULL DEFAULT 0,
    replay_token  BLOB,
    cancel_asked  INTEGER NOT NULL DEFAULT 0,
    gated         INTEGER NOT NULL DEFAULT 0,   -- running behind a gate
    has_children  INTEGER NOT NULL DEFAULT 0,
    waits_for     INTEGER NOT NULL DEFAULT 0,
    parent_died   TEXT,
    created_at    INTEGER NOT NULL,
    due_at        INTEGER,
    ready_at      INTEGER,
    claimed_at    INTEGER,
    started_at    INTEGER,
    ended_at      INTEGER,
    expires_at    INTEGER,                      -- cleared when it ends
    died_at       INTEGER,                      -- ended_at of a dead letter
    buried_at     INTEGER,                      -- ended_at of a tombstone
    claimant      INTEGER,
    claim_no      INTEGER,
    member        TEXT,
    fence         INTEGER,
    settled_fence INTEGER,
    timeout       INTEGER,
    retry         BLOB,
    on_dead       TEXT,
    schedule      TEXT,
    progress      BLOB,
    codec         INTEGER NOT NULL,
    headers       BLOB,
    body          BLOB,
    result        BLOB
) STRICT;
CREATE INDEX job_ready     ON job (queue, priority, suspect, lane, seq) WHERE state = 2;
CREATE INDEX job_due       ON job (queue, due_at, seq) WHERE state = 1;
CREATE INDEX job_running   ON job (claimant) WHERE state = 3;
CREATE INDEX job_ended     ON job (queue, state, ended_at) WHERE ended_at IS NOT NULL AND form < 2;
-- The others leave `state` out, so that claim and completion, which change it, do not touch them: each
-- index that a changed column concerns costs an UPDATE about 2,500 instructions, used or not.
-- Who stands behind a gate: only running jobs are gated, and only those of queues with limits.
CREATE INDEX job_held_key  ON job (queue, key) WHERE gated = 1;
CREATE INDEX job_held_task ON job (queue, task) WHERE gated = 1;
CREATE INDEX job_blocked   ON job (queue) WHERE waits_for > 0;
CREATE INDEX job_dead_task ON job (queue, task, died_at) WHERE died_at IS NOT NULL;
CREATE INDEX job_tombstone ON job (buried_at) WHERE buried_at IS NOT NULL;
CREATE INDEX job_expires   ON job (expires_at) WHERE expires_at IS NOT NULL;

-- Attempts that did not complete: the first 5 and the last 20 of a job.
CREATE TABLE failure (
    job    INTEGER NOT NULL,
    number INTEGER NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE log (
    job     INTEGER NOT NULL,
    fence   INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    level   TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (job, fence, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoint (
    job    INTEGER NOT NULL,
    name   TEXT NOT NULL,
    number INTEGER NOT NULL,
    value  BLOB NOT NULL,
    PRIMARY KEY (job, name)
) STRICT, WITHOUT ROWID;

-- child waits for parent
CREATE TABLE wait (
    parent INTEGER NOT NULL,
    child  INTEGER NOT NULL,
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX wait_child ON wait (child);

-- Parents that ended and whose children have not all been told: state in which they ended (-1: they
-- were deleted), and the last child told.
CREATE TABLE ripple (
    pk     INTEGER PRIMARY KEY,
    parent INTEGER NOT NULL,
    state  INTEGER NOT NULL,
    told   INTEGER NOT NULL
) STRICT;

-- Lanes that may have ready jobs. Those with a group are deleted when found empty.
CREATE TABLE lane (
    queue    INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    suspect  INTEGER NOT NULL,
    lane     TEXT NOT NULL,
    task     TEXT NOT NULL DEFAULT '',      -- the limited task it is for
    key      TEXT NOT NULL DEFAULT '',      -- the limited key it is for
    parked   INTEGER NOT NULL DEFAULT 0,    -- its key's gate is full
    stale    INTEGER,                       -- options changed: jobs from this seq on may belong elsewhere
    PRIMARY KEY (queue, priority, suspect, lane)
) STRICT, WITHOUT ROWID;
CREATE INDEX lane_open  ON lane (queue, priority, suspect, task, lane) WHERE parked = 0;
CREATE INDEX lane_key   ON lane (queue, key);
CREATE INDEX lane_stale ON lane (queue) WHERE stale IS NOT NULL;

-- Full gates. wake_at NULL: until a holder goes.
CREATE TABLE parked (
    queue   INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    name    TEXT NOT NULL,
    wake_at INTEGER,
    PRIMARY KEY (queue, kind, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX parked_wake ON parked (queue, wake_at) WHERE wake_at IS NOT NULL;

-- The log of a rate: starts per step of window/1000.
CREATE TABLE start (
    queue INTEGER NOT NULL,
    kind  TEXT NOT NULL,
    name  TEXT NOT NULL,
    step  INTEGER NOT NULL,
    count INTEGER NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (queue, kind, name, step)
) STRICT, WITHOUT ROWID;
CREATE INDEX start_until ON start (until);

-- How many jobs are in each state now, kept in the same step as the change.
CREATE TABLE tally (
    queue INTEGER NOT NULL,
    state INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (queue, state)
) STRICT, WITHOUT ROWID;

-- What ended, per minute.
CREATE TABLE finished (
    queue     INTEGER NOT NULL,
    minute    INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    failed    INTEGER NOT NULL,
    dead      INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    PRIMARY KEY (queue, minute)
) STRICT, WITHOUT ROWID;
CREATE INDEX finished_minute ON finished (minute);

CREATE TABLE member (
    id           BLOB PRIMARY KEY,
    name         TEXT NOT NULL,
    info         BLOB NOT NULL,
    since        INTEGER NOT NULL,
    beat_at      INTEGER NOT NULL,
    steady_since INTEGER NOT NULL,
    gone_at      INTEGER NOT NULL               -- beat_at + its lease
) STRICT, WITHOUT ROWID;

CREATE TABLE claimant (
    pk         INTEGER PRIMARY KEY AUTOINCREMENT,
    id         BLOB NOT NULL UNIQUE,
    member     BLOB NOT NULL,
    number     INTEGER NOT NULL DEFAULT 0,      -- of the last claim that took jobs
    retired_at INTEGER
) STRICT;
CREATE INDEX claimant_member ON claimant (member);

CREATE TABLE watch (
    job    INTEGER NOT NULL,
    waiter TEXT NOT NULL,
    until  INTEGER NOT NULL,
    PRIMARY KEY (job, waiter)
) STRICT, WITHOUT ROWID;

CREATE TABLE task (
    name  TEXT PRIMARY KEY,
    entry BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE schedule (
    name    TEXT PRIMARY KEY,
    timing  BLOB NOT NULL,
    job     BLOB NOT NULL,
    missed  TEXT NOT NULL,
    next_at INTEGER,
    last_at INTEGER,
    paused  INTEGER NOT NULL DEFAULT 0,
    version INTEGER NOT NULL DEFAULT 1
) STRICT, WITHOUT ROWID;

CREATE TABLE lease (
    name       TEXT PRIMARY KEY,
    holder     TEXT NOT NULL,
    fence      INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    at     INTEGER NOT NULL,
    by     TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    detail TEXT NOT NULL DEFAULT ''
) STRICT;
