-- oldest code: 1
-- The whole state of one namespace in one file. Times and spans are microseconds. States are the
-- positions in model.job.STATES: 0 blocked, 1 scheduled, 2 ready, 3 running, 4 completed, 5 dead,
-- 6 cancelled. All writes go through BEGIN IMMEDIATE, so a statement may rely on what it has read.
--
-- What a job is lies in `job`, written at enqueue and by rare steps; where it stands lies in narrow
-- tables, so that a claim and a completion never rewrite a payload. The authority on its state, the
-- first that holds:
--
--     ended      it has a row in `outcome`: completed, dead or cancelled, as that says
--     running    a stretch of `run` covers its pk
--     else       `job.state`: blocked, scheduled or ready
--
-- The view `job_now` puts that together. Beside it, in the same step, a job stands in exactly one order:
-- blocked in `blocked`, scheduled in `due`, ready in `ready`, ended in `ended` (or `grave`, if only a
-- tombstone is left). A stretch is a row that stands for consecutive jobs, `first` to `last`, keyed by its
-- last so that taking from its front changes no key: jobs that came together cost one row, not one each.

CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row. The next seq, which orders jobs and gives each its pk, is beyond this seq and beyond every pk (a
-- new job's own row tells; here it stands if it was drawn otherwise, or if its job is gone), so that no pk
-- ever comes twice; config grows
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
    pk           INTEGER PRIMARY KEY,
    id           BLOB NOT NULL UNIQUE,
    seq          INTEGER NOT NULL,
    task         TEXT NOT NULL,
    queue        INTEGER NOT NULL,
    priority     INTEGER NOT NULL,
    attempts     INTEGER NOT NULL DEFAULT 0,    -- that did not complete
    max_attempts INTEGER NOT NULL,
    codec        INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    ready_at     INTEGER,
    state        INTEGER NOT NULL DEFAULT 2,    -- blocked, scheduled or ready; see above
    lane         TEXT NOT NULL DEFAULT '',      -- the group of its lane
    crashes      INTEGER NOT NULL DEFAULT 0,
    suspect      INTEGER NOT NULL DEFAULT 0,
    key          TEXT,
    due_at       INTEGER,
    expires_at   INTEGER,
    timeout      INTEGER,
    retry        BLOB,
    on_dead      TEXT,
    schedule     TEXT,
    headers      BLOB,
    body         BLOB
) STRICT;

-- What most jobs never have. A job without a row here completes plainly.
CREATE TABLE more (
    pk            INTEGER PRIMARY KEY,
    losses        INTEGER NOT NULL DEFAULT 0,
    failures      INTEGER NOT NULL DEFAULT 0,   -- how many there were; the kept ones are in failure
    replays       INTEGER NOT NULL DEFAULT 0,
    replay_token  BLOB,
    cancel_asked  INTEGER NOT NULL DEFAULT 0,
    has_children  INTEGER NOT NULL DEFAULT 0,
    waits_for     INTEGER NOT NULL DEFAULT 0,
    parent_died   TEXT,
    progress      BLOB,
    fence         INTEGER,                      -- of the last run that did not end it, as are those below
    settled_fence INTEGER,
    claimed_at    INTEGER,
    member        TEXT,
    started_fence INTEGER,                      -- the run that started_at is about: maybe the present one
    started_at    INTEGER
) STRICT;

-- Runs: stretches of jobs of one queue that were claimed together. A fence is `ahead` of its pk.
CREATE TABLE run (
    last       INTEGER PRIMARY KEY,
    first      INTEGER NOT NULL,
    ahead      INTEGER NOT NULL,
    queue      INTEGER NOT NULL,
    claimant   INTEGER NOT NULL,
    claim_no   INTEGER NOT NULL,
    claimed_at INTEGER NOT NULL,
    member     TEXT NOT NULL
) STRICT;
CREATE INDEX run_claimant ON run (claimant);

-- How a job ended.
CREATE TABLE outcome (
    pk         INTEGER PRIMARY KEY,
    state      INTEGER NOT NULL,
    form       INTEGER NOT NULL DEFAULT 0,      -- 0 whole, 1 body and result dropped, 2 tombstone
    ended_at   INTEGER NOT NULL,
    fence      INTEGER,                         -- of the run that settled it
    claimed_at INTEGER,
    started_at INTEGER,
    member     TEXT,
    result     BLOB
) STRICT;

CREATE VIEW job_now AS
SELECT
    job.pk AS pk, job.id AS id, job.task AS task, job.queue AS queue, job.priority AS priority,
    job.key AS key, job.lane AS lane, job.seq AS seq, job.crashes AS crashes, job.suspect AS suspect,
    CASE
        WHEN outcome.pk IS NOT NULL THEN outcome.state
        WHEN run.last IS NOT NULL THEN 3
        ELSE job.state
    END AS state,
    ifnull(outcome.form, 0) AS form,
    job.attempts + ifnull(outcome.state = 4, 0) AS attempts,
    job.max_attempts AS max_attempts,
    job.created_at AS created_at, job.due_at AS due_at, job.ready_at AS ready_at,
    outcome.ended_at AS ended_at,
    CASE WHEN outcome.pk IS NULL THEN job.expires_at END AS expires_at,
    run.claimant AS claimant, run.claim_no AS claim_no,
    coalesce(outcome.fence, job.pk + run.ahead, more.fence) AS fence,
    ifnull(outcome.fence, more.settled_fence) AS settled_fence,
    coalesce(outcome.claimed_at, run.claimed_at, more.claimed_at) AS claimed_at,
    coalesce(outcome.member, run.member, more.member) AS member,
    CASE
        WHEN outcome.pk IS NOT NULL THEN outcome.started_at
        WHEN run.last IS NULL OR more.started_fence = job.pk + run.ahead THEN more.started_at
    END AS started_at,
    ifnull(more.losses, 0) AS losses, ifnull(more.failures, 0) AS failures,
    ifnull(more.replays, 0) AS replays, more.replay_token AS replay_token,
    ifnull(more.cancel_asked, 0) AS cancel_asked, ifnull(more.has_children, 0) AS has_children,
    ifnull(more.waits_for, 0) AS waits_for, more.parent_died AS parent_died, more.progress AS progress,
    job.timeout AS timeout, job.retry AS retry, job.on_dead AS on_dead, job.schedule AS schedule,
    job.codec AS codec, job.headers AS headers, job.body AS body, outcome.result AS result
FROM job
LEFT JOIN outcome ON outcome.pk = job.pk
LEFT JOIN run ON run.last = (SELECT min(last) FROM run WHERE last >= job.pk) AND run.first <= job.pk
LEFT JOIN more ON more.pk = job.pk;

-- The order of ready jobs: stretches of seq. A seq is `ahead` of its pk.
CREATE TABLE ready (
    queue    INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    suspect  INTEGER NOT NULL,
    lane     TEXT NOT NULL,
    last     INTEGER NOT NULL,
    first    INTEGER NOT NULL,
    ahead    INTEGER NOT NULL,
    PRIMARY KEY (queue, priority, suspect, lane, last)
) STRICT, WITHOUT ROWID;

-- The order of scheduled jobs.
CREATE TABLE due (
    queue  INTEGER NOT NULL,
    due_at INTEGER NOT NULL,
    seq    INTEGER NOT NULL,
    pk     INTEGER NOT NULL,
    PRIMARY KEY (queue, due_at, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE blocked (
    queue INTEGER NOT NULL,
    pk    INTEGER NOT NULL,
    PRIMARY KEY (queue, pk)
) STRICT, WITHOUT ROWID;

-- The order of ended jobs that are kept: stretches of pk.
CREATE TABLE ended (
    queue    INTEGER NOT NULL,
    state    INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    last     INTEGER NOT NULL,
    first    INTEGER NOT NULL,
    PRIMARY KEY (queue, state, ended_at, last)
) STRICT, WITHOUT ROWID;

-- The dead letters among them, by task.
CREATE TABLE dead (
    queue    INTEGER NOT NULL,
    task     TEXT NOT NULL,
    ended_at INTEGER NOT NULL,
    pk       INTEGER NOT NULL,
    PRIMARY KEY (queue, task, ended_at, pk)
) STRICT, WITHOUT ROWID;

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

-- Who stands behind a gate: exactly the running jobs of queues with limits.
CREATE TABLE held (
    pk    INTEGER PRIMARY KEY,
    queue INTEGER NOT NULL,
    task  TEXT NOT NULL,
    key   TEXT NOT NULL                         -- '' for none
) STRICT;
CREATE INDEX held_key  ON held (queue, key);
CREATE INDEX held_task ON held (queue, task);

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
    overlap TEXT NOT NULL,
    waiting INTEGER NOT NULL,
    source  TEXT NOT NULL,
    declared_at INTEGER NOT NULL,
    next_at INTEGER,
    last_at INTEGER,
    line    BLOB NOT NULL DEFAULT x'5b5d',
    paused  INTEGER NOT NULL DEFAULT 0,
    retired_at INTEGER,
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
