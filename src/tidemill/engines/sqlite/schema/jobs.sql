-- What a job is, and what belongs to one job.
--
-- `job` holds what is written at enqueue and by rare steps. Where a job is lies in narrow tables, so that a claim and a
-- completion never rewrite a payload. The state of a job is the first of these that holds:
--
--     ended      it has a row in `outcome`: completed, dead or cancelled, as that row says
--     running    a range of `run` covers its pk
--     else       `job.state`: blocked, scheduled or ready
--
-- The view `job_now` puts that together.
--
-- A range is one row for consecutive jobs, `first` to `last`: jobs that came together cost one row, not one each. Its key
-- is its last job, so that taking jobs from its front changes no key (decision 0006, ranges.py).

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
    state        INTEGER NOT NULL DEFAULT 2,    -- blocked, scheduled or ready: see above
    lane         TEXT NOT NULL DEFAULT '',      -- the group of its lane
    crashes      INTEGER NOT NULL DEFAULT 0,
    snoozes      INTEGER NOT NULL DEFAULT 0,    -- releases because its code asked for a later time
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

-- What most jobs never have. A job without a row here completes on the fast path.
CREATE TABLE more (
    pk            INTEGER PRIMARY KEY,
    lost_runs     INTEGER NOT NULL DEFAULT 0,
    failures      INTEGER NOT NULL DEFAULT 0,   -- how many there were; the kept ones are in failure
    replays       INTEGER NOT NULL DEFAULT 0,
    replay_token  BLOB,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    has_children  INTEGER NOT NULL DEFAULT 0,
    waits_for     INTEGER NOT NULL DEFAULT 0,
    parent_died   TEXT,
    progress      BLOB,
    fence         INTEGER,                      -- of the last run that did not end it, as are those below
    settled_fence INTEGER,
    claimed_at    INTEGER,
    member        TEXT,
    started_fence INTEGER,                      -- the run that started_at is about: maybe the present one
    started_at    INTEGER,
    reason        TEXT,                         -- why the last run was released; meaningless once the next one begins
    unique_key    TEXT,                         -- as it was enqueued; unique_key has who holds it
    unique_until  INTEGER                       -- 0 end, 1 start, 2 a period
) STRICT;

-- Keys that jobs hold (decision 0031): a job that is live, or with at_start = 1 has not started.
CREATE TABLE unique_key (
    task     TEXT NOT NULL,
    key      TEXT NOT NULL,
    pk       INTEGER NOT NULL,
    at_start INTEGER NOT NULL,
    PRIMARY KEY (task, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX unique_key_job ON unique_key (at_start, pk);

-- Keys that are held for a period, whatever becomes of the job.
CREATE TABLE unique_period (
    task  TEXT NOT NULL,
    key   TEXT NOT NULL,
    job   BLOB NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (task, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX unique_period_until ON unique_period (until);

-- Calls that replaced a waiting job: the last 16 of each.
CREATE TABLE replacing (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id     BLOB NOT NULL UNIQUE,
    pk     INTEGER NOT NULL
) STRICT;
CREATE INDEX replacing_job ON replacing (pk);

-- Runs: ranges of jobs of one queue that were claimed together. A job's fence is its pk + `ahead`.
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

-- A job with its state.
CREATE VIEW job_now AS
SELECT
    job.pk AS pk, job.id AS id, job.task AS task, job.queue AS queue, job.priority AS priority,
    job.key AS key, job.lane AS lane, job.seq AS seq, job.crashes AS crashes, job.snoozes AS snoozes,
    job.suspect AS suspect,
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
    ifnull(more.lost_runs, 0) AS lost_runs, ifnull(more.failures, 0) AS failures,
    ifnull(more.replays, 0) AS replays, more.replay_token AS replay_token,
    ifnull(more.cancel_requested, 0) AS cancel_requested, ifnull(more.has_children, 0) AS has_children,
    ifnull(more.waits_for, 0) AS waits_for, more.parent_died AS parent_died, more.progress AS progress,
    more.unique_key AS unique_key, more.unique_until AS unique_until,
    CASE WHEN outcome.pk IS NULL AND run.last IS NULL THEN more.reason END AS reason,
    job.timeout AS timeout, job.retry AS retry, job.on_dead AS on_dead, job.schedule AS schedule,
    job.codec AS codec, job.headers AS headers, job.body AS body, outcome.result AS result
FROM job
LEFT JOIN outcome ON outcome.pk = job.pk
LEFT JOIN run ON run.last = (SELECT min(last) FROM run WHERE last >= job.pk) AND run.first <= job.pk
LEFT JOIN more ON more.pk = job.pk;

-- Attempts that did not complete: the first 5 and the last 20 of a job.
CREATE TABLE failure (
    job    INTEGER NOT NULL,
    number INTEGER NOT NULL,
    record BLOB NOT NULL,
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

-- Log lines of runs.
CREATE TABLE log (
    job     INTEGER NOT NULL,
    fence   INTEGER NOT NULL,
    number  INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    level   TEXT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (job, fence, number)
) STRICT, WITHOUT ROWID;

-- What a run stored for the next attempt.
CREATE TABLE checkpoint (
    job    INTEGER NOT NULL,
    name   TEXT NOT NULL,
    number INTEGER NOT NULL,
    value  BLOB NOT NULL,
    PRIMARY KEY (job, name)
) STRICT, WITHOUT ROWID;

-- A child waits for its parent.
CREATE TABLE wait (
    parent INTEGER NOT NULL,
    child  INTEGER NOT NULL,
    PRIMARY KEY (parent, child)
) STRICT, WITHOUT ROWID;
CREATE INDEX wait_child ON wait (child);

-- Parents that ended and whose children have not all been updated: the state in which the parent ended (-1: it was
-- deleted), and the last child that was updated.
CREATE TABLE ended_parent (
    pk         INTEGER PRIMARY KEY,
    parent     INTEGER NOT NULL,
    state      INTEGER NOT NULL,
    last_child INTEGER NOT NULL
) STRICT;

-- Who gets a signal when a job ends.
CREATE TABLE watch (
    job    INTEGER NOT NULL,
    waiter TEXT NOT NULL,
    until  INTEGER NOT NULL,
    PRIMARY KEY (job, waiter)
) STRICT, WITHOUT ROWID;
