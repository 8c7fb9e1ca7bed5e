-- Queues, the catalogue of tasks, and counts by queue.

CREATE TABLE queue (
    pk         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    options    BLOB NOT NULL,               -- in force: what `layers` come to
    layers     BLOB NOT NULL DEFAULT x'7b7d',  -- what apps declare and what operators set over it
    version    INTEGER NOT NULL DEFAULT 0,  -- grows with every change of `layers`
    created_at INTEGER NOT NULL,
    paused_at  INTEGER,
    paused_by  TEXT NOT NULL DEFAULT '',
    paused_why TEXT NOT NULL DEFAULT ''
) STRICT;

-- The catalogue: what workers published about their tasks.
CREATE TABLE task (
    name       TEXT PRIMARY KEY,
    entry      BLOB NOT NULL,
    paused_at  INTEGER,
    paused_by  TEXT NOT NULL DEFAULT '',
    paused_why TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

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

-- How long jobs waited and ran, per minute: of a whole queue (grain 0, no task) and of its tasks (grain 1). `packed`: both
-- histograms (model/stats), a list in MessagePack.
CREATE TABLE stat (
    grain  INTEGER NOT NULL,
    minute INTEGER NOT NULL,
    queue  TEXT NOT NULL,
    task   TEXT NOT NULL,
    packed BLOB NOT NULL,
    PRIMARY KEY (grain, minute, queue, task)
) STRICT, WITHOUT ROWID;

-- How a queue stood at the end of a minute, as the controller noted it.
CREATE TABLE sample (
    minute       INTEGER NOT NULL,
    queue        TEXT NOT NULL,
    stock        INTEGER NOT NULL,
    arrived      INTEGER,
    oldest_ready INTEGER,
    PRIMARY KEY (minute, queue)
) STRICT, WITHOUT ROWID;
