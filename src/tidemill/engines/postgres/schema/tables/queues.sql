-- Queues, the catalogue of tasks, and counts by queue.

-- `options` is the record as JSON. The other columns say the same, flat, so that no step reads JSON.
CREATE TABLE queue (
    name            text COLLATE "C" PRIMARY KEY,
    options         bytea NOT NULL DEFAULT '{}',
    version         bigint NOT NULL DEFAULT 0,      -- grows with every change: a claim compares it under its lock
    created_at      bigint NOT NULL,
    paused_at       bigint,
    paused_by       text NOT NULL DEFAULT '',
    paused_why      text NOT NULL DEFAULT '',
    keyed           boolean NOT NULL DEFAULT false, -- each key has its lane
    shaped          boolean NOT NULL DEFAULT false, -- lanes have groups: by key, or by limited task
    limited         boolean NOT NULL DEFAULT false, -- some gate may hold jobs back
    laned           boolean NOT NULL DEFAULT false, -- one of both: its lanes stand in `lane`
    key_limited     boolean NOT NULL DEFAULT false,
    counts_runs     boolean NOT NULL DEFAULT false, -- some gate counts what runs: the end of a run leaves a row in `freed`
    concurrency     bigint,
    rate_count      bigint,
    rate_window     bigint,
    key_concurrency bigint,
    key_rate_count  bigint,
    key_rate_window bigint,
    limits          jsonb NOT NULL DEFAULT '{}',    -- key with a limit of its own -> [concurrency, count, window]
    tasks           jsonb NOT NULL DEFAULT '{}',    -- limited task -> [concurrency, count, window]
    starts          jsonb,                          -- when jobs under a rate start (model.starts); NULL: none are
    weights         jsonb NOT NULL DEFAULT '{}',    -- key -> turns
    keep_body       boolean NOT NULL DEFAULT true,
    keep_ages       bigint[] NOT NULL DEFAULT '{86400000000,NULL,86400000000}',  -- completed, dead, cancelled
    keep_counts     bigint[] NOT NULL DEFAULT '{1000000,NULL,1000000}',
    keeps_all       boolean NOT NULL DEFAULT true,  -- body kept, and no final state left as a tombstone
    stale           jsonb,                          -- the shape has changed: the position up to which jobs were moved to their new lanes
    reshaped        xid8                            -- older transactions may have read the former shape: when they have
                                                    -- ended, all waiting jobs are checked again. The largest xid8: no
                                                    -- claim has set it yet
);

-- The layers that `queue.options` come from: what apps declare, and what operators set over it. Apart from `queue`, so that
-- a change that leaves the options as they are touches no row that claims read.
CREATE TABLE queue_layers (
    name    text COLLATE "C" PRIMARY KEY,
    layers  bytea NOT NULL,
    version bigint NOT NULL                         -- grows with every change
);

-- The catalogue: what workers published about their tasks.
CREATE TABLE task (
    name  text COLLATE "C" PRIMARY KEY,
    entry bytea NOT NULL
);

-- Tasks that an operator has paused. Apart from the catalogue, so that claims look into an empty table.
CREATE TABLE paused_task (
    name       text COLLATE "C" PRIMARY KEY,
    paused_at  bigint NOT NULL,
    paused_by  text NOT NULL,
    paused_why text NOT NULL
);

-- Counts of states too large to be counted each time; recounted, never incremented.
CREATE TABLE tally (
    queue      text COLLATE "C" NOT NULL,
    state      smallint NOT NULL,
    count      bigint NOT NULL,
    counted_at bigint NOT NULL,
    PRIMARY KEY (queue, state)
);
-- The same for dead-letter groups.
CREATE TABLE group_tally (
    queue       text COLLATE "C" NOT NULL,
    task        text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,
    count       bigint NOT NULL,
    counted_at  bigint NOT NULL,
    PRIMARY KEY (queue, task, fingerprint)
);

-- What ended, per minute; appended by each step, folded by promotes.
CREATE TABLE finished_new (
    queue     text COLLATE "C" NOT NULL,
    minute    bigint NOT NULL,
    completed integer NOT NULL,
    failed    integer NOT NULL,
    dead      integer NOT NULL,
    cancelled integer NOT NULL
);
CREATE TABLE finished (
    queue     text COLLATE "C" NOT NULL,
    minute    bigint NOT NULL,
    completed bigint NOT NULL,
    failed    bigint NOT NULL,
    dead      bigint NOT NULL,
    cancelled bigint NOT NULL,
    PRIMARY KEY (minute, queue)
);

-- How long jobs waited and ran, per minute: of a whole queue (grain 0, no task) and of its tasks (grain 1). `packed`: both
-- histograms (model/stats), a number for each cell that is not empty. Appended by heartbeats; folded by prunes when the
-- minute is over, so that a row of `stat` is written once.
CREATE TABLE stat_new (
    minute bigint NOT NULL,
    grain  smallint NOT NULL,
    queue  text COLLATE "C" NOT NULL,
    task   text COLLATE "C" NOT NULL,
    packed bigint[] NOT NULL
);
CREATE INDEX stat_new_minute ON stat_new (minute);
CREATE TABLE stat (
    minute bigint NOT NULL,
    grain  smallint NOT NULL,
    queue  text COLLATE "C" NOT NULL,
    task   text COLLATE "C" NOT NULL,
    packed bigint[] NOT NULL,
    PRIMARY KEY (grain, minute, queue, task)
);

-- How a queue stood at the end of a minute, as the controller noted it.
CREATE TABLE sample (
    minute       bigint NOT NULL,
    queue        text COLLATE "C" NOT NULL,
    stock        bigint NOT NULL,
    arrived      bigint,
    oldest_ready bigint,
    PRIMARY KEY (minute, queue)
);
