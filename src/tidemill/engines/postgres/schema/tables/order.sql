-- Order in queues with groups or limits: lanes, gates, and the log of a rate. Queues without them need none of this:
-- their order is `job.seq`.

-- The lanes of laned queues (`queue.laned`) that may have ready jobs. A ready job of such a queue stands in a lane that has
-- a row here or an announcement below, and its seq is not before `first` unless it is marked `back`. So a queue without open
-- lanes and announcements costs a claim nothing. Written under the queue's exclusive lock alone.
CREATE TABLE lane (
    queue    text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    suspect  boolean NOT NULL,
    lane     text COLLATE "C" NOT NULL,
    task     text COLLATE "C" NOT NULL,             -- the limited task it is for
    key      text COLLATE "C" NOT NULL,
    first    bigint NOT NULL,
    parked   boolean NOT NULL DEFAULT false,        -- its key's gate is full
    PRIMARY KEY (queue, priority, suspect, lane)
);
CREATE INDEX lane_open ON lane (queue, task, priority, lane) WHERE NOT parked;
CREATE INDEX lane_key  ON lane (queue, key);

-- Announcements: plain inserts that never wait, made in the step that makes the jobs ready; folded by claims and promotes.
-- first: the lowest seq of the announced jobs; of jobs that are marked `back` the highest bigint.
CREATE TABLE lane_new (
    queue    text COLLATE "C" NOT NULL,
    priority smallint NOT NULL,
    suspect  boolean NOT NULL,
    lane     text COLLATE "C" NOT NULL,
    task     text COLLATE "C" NOT NULL,
    key      text COLLATE "C" NOT NULL,
    first    bigint NOT NULL
);
CREATE INDEX lane_new_queue ON lane_new (queue);
CREATE TABLE queue_new (
    name       text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL
);
CREATE INDEX queue_new_name ON queue_new (name);
-- A holder of gates that count what runs is gone: a plain insert, folded by the next claim. task, key: '' if they have no
-- gate of their own.
CREATE TABLE freed (
    queue text COLLATE "C" NOT NULL,
    task  text COLLATE "C" NOT NULL,
    key   text COLLATE "C" NOT NULL
);
CREATE INDEX freed_queue ON freed (queue);

-- Full gates, so that no claim measures them again before they open. kind: queue, task or key, as in `start`. wake_at: when a
-- rate opens; NULL: when a holder goes. Written under the queue's exclusive lock alone.
CREATE TABLE parked (
    queue   text COLLATE "C" NOT NULL,
    kind    text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,
    wake_at bigint,
    PRIMARY KEY (queue, kind, name)
);
CREATE INDEX parked_wake ON parked (queue, wake_at) WHERE wake_at IS NOT NULL;
CREATE INDEX parked_held ON parked (queue, name) WHERE wake_at IS NULL;

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
