-- Who works: members, their claimants and claims; schedules; named leases.

-- Who is there. `steady_since`: since then no heartbeat was late; only a steady member may sweep others.
CREATE TABLE member (
    id           bytea PRIMARY KEY,
    name         text COLLATE "C" NOT NULL,
    info         bytea NOT NULL,
    heartbeat         bigint NOT NULL,
    lease        bigint NOT NULL,
    since        bigint NOT NULL,
    heartbeat_at      bigint NOT NULL,
    steady_since bigint NOT NULL,
    gone_at      bigint NOT NULL,                   -- heartbeat_at + its lease
    stats        bigint NOT NULL DEFAULT 0          -- the number of its last batch of statistics
);

-- A worker process of a member: it claims under numbers that grow.
CREATE TABLE claimant (
    id         bytea PRIMARY KEY,
    member     bytea NOT NULL,
    oldest     bigint NOT NULL DEFAULT 0,           -- no claim with a lower number has jobs that run
    retired_at bigint
);
CREATE INDEX claimant_member  ON claimant (member);
CREATE INDEX claimant_retired ON claimant (retired_at) WHERE retired_at IS NOT NULL;

-- The claims that took jobs of which some may still run. The highest number is the last claim; heartbeats delete the others.
-- A row for each claim, not a number that is updated: while a transaction holds a snapshot, the former versions of an updated
-- row stay and are stepped over each time (30,000 of them in five minutes), but the end of an index is found at once. For the
-- same reason the runs of a claimant are found by these rows, from its `oldest` on.
CREATE TABLE claimed (
    claimant bytea NOT NULL,
    number   bigint NOT NULL,
    PRIMARY KEY (claimant, number)
);

-- Schedules (decision 0014). `line`: the ticks before the last one whose jobs had not ended when it fired.
-- `kept`: those whose jobs may still be there, if `keep` bounds them.
CREATE TABLE schedule (
    name    text COLLATE "C" PRIMARY KEY,
    timing  bytea NOT NULL,
    job     bytea NOT NULL,
    missed  text NOT NULL,
    overlap text NOT NULL,
    waiting bigint NOT NULL,
    keep    bigint,                                 -- NULL: as the queue says
    source  text NOT NULL,
    declared_at bigint NOT NULL,
    next_at bigint,
    last_at bigint,
    line    bytea NOT NULL DEFAULT '[]',
    kept    bytea NOT NULL DEFAULT '[]',
    paused  boolean NOT NULL DEFAULT false,
    retired_at bigint,
    version bigint NOT NULL DEFAULT 1
);

-- Named leases: locks that run out.
CREATE TABLE lease (
    name       text COLLATE "C" PRIMARY KEY,
    holder     text NOT NULL,
    fence      bigint NOT NULL,
    expires_at bigint NOT NULL
);
