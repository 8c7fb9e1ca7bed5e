-- Order in queues with groups or limits: lanes, gates, and the log of a rate. Queues without them need none of this:
-- their order is `job.seq`.

-- Lanes with a group that may have ready jobs; written under the queue's exclusive lock alone. A lane without a group needs
-- no row: every claim reads it.
CREATE TABLE lane (
    queue    text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    suspect  boolean NOT NULL,
    lane     text COLLATE "C" NOT NULL,
    task     text COLLATE "C" NOT NULL,             -- the limited task it is for
    key      text COLLATE "C" NOT NULL,
    parked   boolean NOT NULL DEFAULT false,        -- its key's gate is full
    PRIMARY KEY (queue, priority, suspect, lane)
);
CREATE INDEX lane_open ON lane (queue, priority, lane) WHERE NOT parked;
CREATE INDEX lane_key  ON lane (queue, key);

-- Announcements: plain inserts that never wait, folded by claims and promotes.
CREATE TABLE lane_new (
    queue    text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    suspect  boolean NOT NULL,
    lane     text COLLATE "C" NOT NULL,
    task     text COLLATE "C" NOT NULL,
    key      text COLLATE "C" NOT NULL
);
CREATE INDEX lane_new_queue ON lane_new (queue);
CREATE TABLE queue_new (
    name       text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX queue_new_name ON queue_new (name);
-- A holder of a key's gate is gone: folded by the next claim.
CREATE TABLE freed (
    queue text COLLATE "C" NOT NULL,
    key   text COLLATE "C" NOT NULL
);
CREATE INDEX freed_queue ON freed (queue);

-- Full gates of keys: claims skip their lanes. wake_at: when a rate opens; NULL: when a holder goes.
CREATE TABLE parked (
    queue   text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    wake_at bigint,
    PRIMARY KEY (queue, key)
);
CREATE INDEX parked_wake ON parked (queue, wake_at) WHERE wake_at IS NOT NULL;

-- The log of a rate: how many started, per step of a thousandth of its window. kind: queue, task or key.
CREATE TABLE start (
    queue text COLLATE "C" NOT NULL,
    kind  text COLLATE "C" NOT NULL,               -- "C" as the rest: a parameter of a function has the collation of its
                                                    -- arguments, and with another one the index would not be used
    name  text COLLATE "C" NOT NULL,
    step  bigint NOT NULL,
    count bigint NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (queue, kind, name, step)
);
CREATE INDEX start_until ON start (until);
