-- oldest code: 1
-- The whole state of one namespace in one schema. Times and spans are microseconds. States are the
-- positions in model.job.STATES: 0 blocked, 1 scheduled, 2 ready, 3 running, 4 completed, 5 dead,
-- 6 cancelled. Texts that are ordered or compared are COLLATE "C": by code point, as Python does it.

CREATE TABLE meta (
    name  text PRIMARY KEY,
    value text NOT NULL
);

-- CACHE 1: a cached block would break the order between sessions.
CREATE SEQUENCE seq AS bigint;
CREATE SEQUENCE fence AS bigint;
CREATE SEQUENCE beat AS bigint;

-- `options` is the record; the rest is the same worked out flat, so that no step reads JSON texts.
CREATE TABLE queue (
    name            text COLLATE "C" PRIMARY KEY,
    options         bytea NOT NULL DEFAULT '{}',
    version         bigint NOT NULL DEFAULT 0,      -- grows with every change: a claim compares it under its lock
    created_at      bigint NOT NULL,
    paused_at       bigint,
    paused_by       text NOT NULL DEFAULT '',
    paused_why      text NOT NULL DEFAULT '',
    keyed           boolean NOT NULL DEFAULT false, -- lanes are cut by key
    shaped          boolean NOT NULL DEFAULT false, -- lanes have groups: keyed, or with limited tasks
    limited         boolean NOT NULL DEFAULT false, -- some gate may hold jobs back
    key_limited     boolean NOT NULL DEFAULT false,
    concurrency     bigint,
    rate_count      bigint,
    rate_window     bigint,
    key_concurrency bigint,
    key_rate_count  bigint,
    key_rate_window bigint,
    tasks           jsonb NOT NULL DEFAULT '{}',    -- limited task -> [concurrency, count, window]
    weights         jsonb NOT NULL DEFAULT '{}',    -- key -> turns
    keep_body       boolean NOT NULL DEFAULT true,
    keep_ages       bigint[] NOT NULL DEFAULT '{86400000000,NULL,86400000000}',  -- completed, dead, cancelled
    keep_counts     bigint[] NOT NULL DEFAULT '{1000000,NULL,1000000}',
    keeps_all       boolean NOT NULL DEFAULT true,  -- body kept, and no final state left as a tombstone
    stale           jsonb,                          -- lanes are cut otherwise now: the place up to which jobs were moved
    reshaped        xid8                            -- what is older may have read the former shape: once it has ended, jobs
                                                    -- are looked at again. The largest there is: not dated yet
);

-- What has a fixed size and is never NULL comes first, then what indexes look at: an update compares each indexed column
-- of the old and the new row, and walks there over everything before it (a tenth of the server's time).
CREATE TABLE job (
    born          bigint NOT NULL,                  -- its first seq: the order of creation
    seq           bigint NOT NULL,
    created_at    bigint NOT NULL,
    attempts      integer NOT NULL DEFAULT 0,
    max_attempts  integer NOT NULL,
    crashes       integer NOT NULL DEFAULT 0,
    losses        integer NOT NULL DEFAULT 0,
    failures      integer NOT NULL DEFAULT 0,       -- how many there were; the kept ones are in failure
    replays       integer NOT NULL DEFAULT 0,
    waits_for     integer NOT NULL DEFAULT 0,
    priority      smallint NOT NULL,
    state         smallint NOT NULL,
    form          smallint NOT NULL DEFAULT 0,      -- 0 whole, 1 body and result dropped, 2 tombstone
    codec         smallint NOT NULL,
    suspect       boolean NOT NULL DEFAULT false,
    back          boolean NOT NULL DEFAULT false,   -- ready with a seq that claims may have passed already
    cancel_asked  boolean NOT NULL DEFAULT false,
    gated         boolean NOT NULL DEFAULT false,   -- running behind a gate
    has_children  boolean NOT NULL DEFAULT false,
    id            bytea PRIMARY KEY,
    queue         text COLLATE "C" NOT NULL,        -- no foreign key: a user's transaction may name a new one
    lane          text COLLATE "C" NOT NULL DEFAULT '',  -- the group of its lane
    task          text COLLATE "C" NOT NULL,
    key           text COLLATE "C" NOT NULL DEFAULT '',  -- '' for none
    token         bigint,                           -- the fence while it runs
    fence         bigint,                           -- the last one
    claim_no      bigint,
    claimant      bytea,
    member        text NOT NULL DEFAULT '',
    xid           xid8,                             -- the transaction that made it ready
    due_at        bigint,
    expires_at    bigint,                           -- cleared when it ends
    ended_at      bigint,
    ready_at      bigint,
    claimed_at    bigint,
    started_at    bigint,
    settled_fence bigint,
    timeout       bigint,
    parent_died   text,
    replay_token  bytea,
    retry         bytea,
    on_dead       text,
    schedule      text,
    progress      bytea,
    headers       bytea,
    body          bytea,
    result        bytea
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 1,
        toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_threshold = 5000,
        toast.autovacuum_vacuum_cost_delay = 1);
-- Each condition of the first four is of one index alone, so that the planner has no choice: with `state = 2` in all of them,
-- plans made for a table without statistics looked for marked jobs and suspects among all that were ever ready (3.6 ms a claim
-- after 80,000 jobs beside a held snapshot, 0.1 now). A job that is `back` is ready.
CREATE INDEX job_ready     ON job (queue, priority, suspect, lane, seq) WHERE state = 2;
CREATE INDEX job_back      ON job (queue, priority, suspect, lane, seq) WHERE back;
CREATE INDEX job_suspect   ON job (queue, priority, lane, seq) WHERE suspect AND state::integer = 2;
CREATE INDEX job_late      ON job (queue, xid) WHERE xid IS NOT NULL AND state::integer = 2;
CREATE INDEX job_due       ON job (queue, due_at, seq) WHERE state = 1;
CREATE INDEX job_blocked   ON job (queue, born) WHERE state = 0;
CREATE INDEX job_running   ON job (claimant, claim_no) WHERE token IS NOT NULL;
CREATE INDEX job_held_key  ON job (queue, key) WHERE gated;
CREATE INDEX job_held_task ON job (queue, task) WHERE gated;
CREATE INDEX job_expires   ON job (queue, expires_at) WHERE expires_at IS NOT NULL AND state <= 2;
CREATE INDEX job_ended     ON job (queue, state, ended_at, born) WHERE state >= 4 AND form < 2;
CREATE INDEX job_dead_task ON job (queue, task, ended_at, born) WHERE state = 5 AND form < 2;
CREATE INDEX job_tombstone ON job (ended_at) WHERE form = 2;

-- Attempts that did not complete: the first 5 and the last 20 of a job. `said` is JSON: kind, error,
-- message, traceback.
CREATE TABLE failure (
    job        bytea NOT NULL,
    number     integer NOT NULL,
    attempt    integer NOT NULL,
    claimed_at bigint,
    started_at bigint,
    ended_at   bigint,
    retry_in   bigint,
    member     text NOT NULL,
    said       bytea NOT NULL,
    PRIMARY KEY (job, number)
);

CREATE TABLE log (
    job     bytea NOT NULL,
    fence   bigint NOT NULL,
    number  bigint NOT NULL,
    at      bigint NOT NULL,
    level   text NOT NULL,
    message bytea NOT NULL,                         -- UTF-8: a text could not hold a zero byte
    PRIMARY KEY (job, fence, number)
);

CREATE TABLE checkpoint (
    job    bytea NOT NULL,
    name   text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    value  bytea NOT NULL,
    PRIMARY KEY (job, name)
);

-- child waits for parent; told: the last ripple that it was told of and still waits.
CREATE TABLE wait (
    parent bytea NOT NULL,
    child  bytea NOT NULL,
    born   bigint NOT NULL,                         -- of the child
    told   bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (parent, child)
);
CREATE INDEX wait_untold ON wait (parent, told, born);
CREATE INDEX wait_child  ON wait (child);

-- Parents that ended and whose children have not all been told: state in which they ended (-1: deleted).
CREATE TABLE ripple (
    pk     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    parent bytea NOT NULL,
    state  smallint NOT NULL
);

-- Lanes with a group that may have ready jobs; written under the queue's exclusive lock alone. Lanes
-- without a group need no row and are always looked at.
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

-- Announcements: plain inserts that wait for nobody, folded by claims and promotes.
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
-- A holder of a key's gate went.
CREATE TABLE freed (
    queue text COLLATE "C" NOT NULL,
    key   text COLLATE "C" NOT NULL
);
CREATE INDEX freed_queue ON freed (queue);

-- Full gates of keys. wake_at NULL: until a holder goes.
CREATE TABLE parked (
    queue   text COLLATE "C" NOT NULL,
    key     text COLLATE "C" NOT NULL,
    wake_at bigint,
    PRIMARY KEY (queue, key)
);
CREATE INDEX parked_wake ON parked (queue, wake_at) WHERE wake_at IS NOT NULL;

-- The log of a rate: starts per step of window/1000. kind: queue, task, key.
CREATE TABLE start (
    queue text COLLATE "C" NOT NULL,
    kind  text NOT NULL,
    name  text COLLATE "C" NOT NULL,
    step  bigint NOT NULL,
    count bigint NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (queue, kind, name, step)
);
CREATE INDEX start_until ON start (until);

-- Counts of states too large to be counted each time; recounted, never incremented.
CREATE TABLE tally (
    queue      text COLLATE "C" NOT NULL,
    state      smallint NOT NULL,
    count      bigint NOT NULL,
    counted_at bigint NOT NULL,
    PRIMARY KEY (queue, state)
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

CREATE TABLE member (
    id           bytea PRIMARY KEY,
    name         text COLLATE "C" NOT NULL,
    info         bytea NOT NULL,
    beat         bigint NOT NULL,
    lease        bigint NOT NULL,
    since        bigint NOT NULL,
    beat_at      bigint NOT NULL,
    steady_since bigint NOT NULL,
    gone_at      bigint NOT NULL                    -- beat_at + its lease
);

CREATE TABLE claimant (
    id         bytea PRIMARY KEY,
    member     bytea NOT NULL,
    oldest     bigint NOT NULL DEFAULT 0,           -- no claim with a lower number has jobs that run
    retired_at bigint
);
CREATE INDEX claimant_member  ON claimant (member);
CREATE INDEX claimant_retired ON claimant (retired_at) WHERE retired_at IS NOT NULL;

-- The claims that took jobs, of which something may run; the highest number counts as the last, the others are deleted
-- by beats. A row for each and not a number that is updated: while somebody holds the horizon back, a row's former
-- versions stay and are walked over each time (five minutes: 30,000 of them), but the end of an index is found at once.
-- For the same reason whoever looks for what runs goes by these rows, from the claimant's `oldest` on.
CREATE TABLE claimed (
    claimant bytea NOT NULL,
    number   bigint NOT NULL,
    PRIMARY KEY (claimant, number)
);

CREATE TABLE watch (
    job    bytea NOT NULL,
    waiter text COLLATE "C" NOT NULL,
    until  bigint NOT NULL,
    PRIMARY KEY (job, waiter)
);

CREATE TABLE task (
    name  text COLLATE "C" PRIMARY KEY,
    entry bytea NOT NULL
);

CREATE TABLE schedule (
    name    text COLLATE "C" PRIMARY KEY,
    timing  bytea NOT NULL,
    job     bytea NOT NULL,
    missed  text NOT NULL,
    overlap text NOT NULL,
    waiting bigint NOT NULL,
    source  text NOT NULL,
    declared_at bigint NOT NULL,
    next_at bigint,
    last_at bigint,
    line    bytea NOT NULL DEFAULT '[]',
    paused  boolean NOT NULL DEFAULT false,
    retired_at bigint,
    version bigint NOT NULL DEFAULT 1
);

CREATE TABLE lease (
    name       text COLLATE "C" PRIMARY KEY,
    holder     text NOT NULL,
    fence      bigint NOT NULL,
    expires_at bigint NOT NULL
);

CREATE TABLE audit (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at     bigint NOT NULL,
    by     text NOT NULL,
    action text NOT NULL,
    target text NOT NULL,
    detail text NOT NULL DEFAULT ''
);

-- Parts of jobs go with them, in bulk. Other tables are small and rewritten often: vacuumed by the number of dead
-- rows, whatever the size.
DO $$
DECLARE
    t text;
BEGIN
    FOREACH t IN ARRAY ARRAY['failure', 'log', 'checkpoint'] LOOP
        EXECUTE format('ALTER TABLE %I SET (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
                        autovacuum_vacuum_cost_delay = 1)', t);
    END LOOP;
    FOREACH t IN ARRAY ARRAY['lane', 'lane_new', 'queue_new', 'freed', 'parked', 'start', 'finished_new', 'finished',
                             'member', 'claimant', 'claimed', 'watch', 'lease', 'queue', 'schedule', 'tally', 'wait', 'ripple'] LOOP
        EXECUTE format('ALTER TABLE %I SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500,
                        autovacuum_vacuum_cost_delay = 0)', t);
    END LOOP;
END $$;
