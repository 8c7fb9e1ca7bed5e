-- Jobs, and what belongs to one job: failures, log lines, checkpoints, who waits for it.

-- The order of columns: first those of a fixed size that are never NULL, then those that indexes use. An update compares
-- each indexed column of the old and the new row, and steps over every column before it (a tenth of the server's time).
CREATE TABLE job (
    born          bigint NOT NULL,                  -- its first seq: the order of creation
    seq           bigint NOT NULL,
    created_at    bigint NOT NULL,
    attempts      integer NOT NULL DEFAULT 0,
    max_attempts  integer NOT NULL,
    crashes       integer NOT NULL DEFAULT 0,
    lost_runs     integer NOT NULL DEFAULT 0,
    snoozes       integer NOT NULL DEFAULT 0,       -- releases because its code asked for a later time
    failures      integer NOT NULL DEFAULT 0,       -- how many there were; the kept ones are in failure
    replays       integer NOT NULL DEFAULT 0,
    waits_for     integer NOT NULL DEFAULT 0,
    priority      smallint NOT NULL,
    state         smallint NOT NULL,
    form          smallint NOT NULL DEFAULT 0,      -- 0 whole, 1 body and result dropped, 2 tombstone
    codec         smallint NOT NULL,
    suspect       boolean NOT NULL DEFAULT false,
    back          boolean NOT NULL DEFAULT false,   -- ready with a seq that claims may have passed already
    aside         boolean NOT NULL DEFAULT false,   -- ready, and only claims that may take its task read it
    cancel_requested boolean NOT NULL DEFAULT false,
    gated         boolean NOT NULL DEFAULT false,   -- running behind a gate
    has_children  boolean NOT NULL DEFAULT false,
    id            bytea PRIMARY KEY,
    queue         text COLLATE "C" NOT NULL,        -- no foreign key: a user's transaction may name a new one
    lane          text COLLATE "C" NOT NULL DEFAULT '',  -- the group of its lane; behind its task, if it stands aside
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
    unique_key    text COLLATE "C",                 -- as it was enqueued; the table unique_key has who holds it
    unique_until  smallint,                         -- 0 end, 1 start, 2 a period
    reason        text,                             -- why its last run was released; meaningless once it runs or has ended
    progress      bytea,
    headers       bytea,
    body          bytea,
    result        bytea
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_analyze_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 1,
        toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_threshold = 5000,
        toast.autovacuum_vacuum_cost_delay = 1);
-- The first five indexes have conditions of which none implies another, so that the planner has no choice. With `state = 2`
-- in all of them, plans made for a table without statistics searched for marked jobs and suspects among all that were ever
-- ready (3.6 ms a claim after 80,000 jobs beside a held snapshot; 0.1 ms now). A job that is `back` is ready.
CREATE INDEX job_ready     ON job (queue, priority, suspect, lane, seq) WHERE state = 2;
CREATE INDEX job_back      ON job (queue, priority, suspect, lane, seq) WHERE back;
CREATE INDEX job_suspect   ON job (queue, priority, lane, seq) WHERE suspect AND state::integer = 2;
CREATE INDEX job_aside     ON job (queue, task, priority, suspect, lane, seq) WHERE aside;
CREATE INDEX job_late      ON job (queue, xid) WHERE xid IS NOT NULL AND state::integer = 2;
CREATE INDEX job_due       ON job (queue, due_at, seq) WHERE state = 1;
CREATE INDEX job_blocked   ON job (queue, born) WHERE state = 0;
CREATE INDEX job_running   ON job (claimant, claim_no) WHERE token IS NOT NULL;
CREATE INDEX job_held_key  ON job (queue, key) WHERE gated;
CREATE INDEX job_held_task ON job (queue, task) WHERE gated::integer = 1;  -- not the condition of job_held_key: see above
CREATE INDEX job_expires   ON job (queue, expires_at) WHERE expires_at IS NOT NULL AND state <= 2;
CREATE INDEX job_ended     ON job (queue, state, ended_at, born) WHERE state >= 4 AND form < 2;
CREATE INDEX job_tombstone ON job (ended_at) WHERE form = 2;

-- The dead letters, by task and by group (decision 0027). Apart from `job`, so that jobs that do not die never pay for
-- these orders.
CREATE TABLE dead (
    job         bytea PRIMARY KEY,
    queue       text COLLATE "C" NOT NULL,
    task        text COLLATE "C" NOT NULL,
    fingerprint text COLLATE "C" NOT NULL,          -- of its last failure
    ended_at    bigint NOT NULL,
    born        bigint NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
CREATE INDEX dead_task  ON dead (queue, task, ended_at, born);
CREATE INDEX dead_group ON dead (queue, task, fingerprint, ended_at, born);

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

-- Log lines of runs.
CREATE TABLE log (
    job     bytea NOT NULL,
    fence   bigint NOT NULL,
    number  bigint NOT NULL,
    at      bigint NOT NULL,
    level   text NOT NULL,
    message bytea NOT NULL,                         -- UTF-8: a text could not hold a zero byte
    PRIMARY KEY (job, fence, number)
);

-- What a run stored for the next attempt.
CREATE TABLE checkpoint (
    job    bytea NOT NULL,
    name   text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    value  bytea NOT NULL,
    PRIMARY KEY (job, name)
);

-- A child waits for its parent. seen: the last row of ended_parent that did not end the wait.
CREATE TABLE wait (
    parent bytea NOT NULL,
    child  bytea NOT NULL,
    born   bigint NOT NULL,                         -- of the child
    seen   bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (parent, child)
);
CREATE INDEX wait_unseen ON wait (parent, seen, born);
CREATE INDEX wait_child  ON wait (child);

-- Parents that ended and whose children have not all been updated: the state in which the parent ended (-1: it was
-- deleted).
CREATE TABLE ended_parent (
    pk     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    parent bytea NOT NULL,
    state  smallint NOT NULL
);

-- Unique keys that jobs hold (decision 0031): until they end, or with at_start until they start. Apart from `job`, because
-- an index there would cost every job that has no key.
CREATE TABLE unique_key (
    task     text COLLATE "C" NOT NULL,
    key      text COLLATE "C" NOT NULL,
    job      bytea NOT NULL,
    at_start boolean NOT NULL,
    PRIMARY KEY (task, key)
);
CREATE INDEX unique_key_start ON unique_key (job) WHERE at_start;

-- Unique keys that are held for a period, whatever becomes of the job.
CREATE TABLE unique_period (
    task  text COLLATE "C" NOT NULL,
    key   text COLLATE "C" NOT NULL,
    job   bytea NOT NULL,
    until bigint NOT NULL,
    PRIMARY KEY (task, key)
);
CREATE INDEX unique_period_until ON unique_period (until);

-- Calls that replaced a waiting job: the last 16 of each.
CREATE TABLE replacing (
    number bigint GENERATED ALWAYS AS IDENTITY,
    id     bytea PRIMARY KEY,
    job    bytea NOT NULL
);
CREATE INDEX replacing_job ON replacing (job, number);

-- Waiters that want a signal when a job ends.
CREATE TABLE watch (
    job    bytea NOT NULL,
    waiter text COLLATE "C" NOT NULL,
    until  bigint NOT NULL,
    PRIMARY KEY (job, waiter)
);
