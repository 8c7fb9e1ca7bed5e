-- Lanes and gates: what a claim may take, and whose turn it is (decision 0003).

-- Lanes that may have ready jobs. Those with a group, and those of jobs that stand aside, are deleted when found empty.
--
-- kind: 0 plain, 1 suspect; 2 and 3 the same of jobs that stand aside. Of these `lane` begins with the task
-- (`lanes.aside_lane`), and `aside` has it alone.
CREATE TABLE lane (
    queue    INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    kind     INTEGER NOT NULL,
    lane     TEXT NOT NULL,
    task     TEXT NOT NULL DEFAULT '',      -- the limited task it is for
    key      TEXT NOT NULL DEFAULT '',      -- the limited key it is for
    parked   INTEGER NOT NULL DEFAULT 0,    -- its key's gate is full
    stale    INTEGER,                       -- options changed: jobs from this seq on may belong elsewhere
    aside    TEXT,                          -- the task of the jobs that stand aside in it
    PRIMARY KEY (queue, priority, kind, lane)
) STRICT, WITHOUT ROWID;
CREATE INDEX lane_open  ON lane (queue, priority, kind, task, lane) WHERE parked = 0;
CREATE INDEX lane_key   ON lane (queue, key);
CREATE INDEX lane_stale ON lane (queue) WHERE stale IS NOT NULL;
CREATE INDEX lane_aside ON lane (queue, aside) WHERE aside IS NOT NULL;

-- Who holds a permit of a gate: exactly the running jobs of queues with limits.
CREATE TABLE held (
    pk    INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    task  TEXT NOT NULL,
    key   TEXT NOT NULL                         -- '' for none
) STRICT;
CREATE INDEX held_key  ON held (queue, key);
CREATE INDEX held_task ON held (queue, task);

-- Full gates: claims skip their lanes. wake_at: when a rate opens; NULL: when a holder goes.
CREATE TABLE parked (
    queue   INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    name    TEXT NOT NULL,
    wake_at INTEGER,
    PRIMARY KEY (queue, kind, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX parked_wake ON parked (queue, wake_at) WHERE wake_at IS NOT NULL;

-- The log of a rate: how many started, per step of a thousandth of its window. kind: queue, task or key.
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
