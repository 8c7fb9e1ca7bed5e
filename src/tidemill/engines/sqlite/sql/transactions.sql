-- Enqueue and complete inside a transaction of the caller's own, with named parameters. SQLite's julianday has
-- milliseconds at best; so has this now, by strftime. "This job was stored by this very call" is: its pk is the last seq drawn.

-- name: add_queue
INSERT INTO queue (name, options, created_at)
SELECT :name, :options, CAST(strftime('%s', 'now') AS INTEGER) * 1000000
WHERE NOT EXISTS (SELECT 1 FROM queue WHERE name = :name);

-- name: note_queue
-- A queue that has no count yet is new: other processes read the queues again.
UPDATE counter SET config = config + 1
WHERE NOT EXISTS (SELECT 1 FROM tally JOIN queue ON queue.pk = tally.queue WHERE queue.name = :name);

-- name: draw_seq
UPDATE counter SET seq = max(seq, ifnull((SELECT max(pk) FROM job), 0)) + 1;

-- name: insert_job
INSERT INTO job (
    pk, seq, id, queue, priority, state, task, key, max_attempts,
    created_at, due_at, ready_at, expires_at,
    timeout, retry, on_dead, schedule, codec, headers, body
)
SELECT counter.seq, counter.seq, :id, queue.pk, :priority,
    CASE WHEN ifnull(:at, moment.now + :delay) > moment.now THEN 1 ELSE 2 END,
    :task, nullif(:key, ''), :max_attempts, moment.now,
    CASE WHEN ifnull(:at, moment.now + :delay) > moment.now THEN ifnull(:at, moment.now + :delay) END,
    CASE WHEN ifnull(:at, moment.now + :delay) <= moment.now THEN moment.now END,
    moment.now + :expires, :timeout, :retry, :on_dead, :schedule, :codec, :headers, :body
FROM counter, queue,
    (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000
          + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 AS now) AS moment
WHERE queue.name = :queue AND NOT EXISTS (SELECT 1 FROM job WHERE id = :id);

-- name: was_created
SELECT EXISTS (SELECT 1 FROM job WHERE id = :id AND pk = (SELECT seq FROM counter));

-- name: find_holder
-- The job that holds the key: of a period it may be gone.
SELECT CAST(job.id AS BLOB) FROM unique_key JOIN job ON job.pk = unique_key.pk
WHERE unique_key.task = :task AND unique_key.key = :unique AND :until < 2
UNION ALL
SELECT job FROM unique_period, (SELECT CAST(strftime('%s', 'now') AS INTEGER) * 1000000
    + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000 AS now) AS moment
WHERE unique_period.task = :task AND unique_period.key = :unique AND :until = 2 AND unique_period.until > moment.now;

-- name: find_replaced
SELECT job.id FROM replacing JOIN job ON job.pk = replacing.pk WHERE replacing.id = :id;

-- name: note_key
INSERT INTO more (pk, unique_key, unique_until) SELECT pk, :unique, :until FROM job WHERE id = :id;

-- name: hold_key
INSERT OR IGNORE INTO unique_key (task, key, pk, at_start)
SELECT :task, :unique, pk, :until = 1 FROM job WHERE id = :id AND :until < 2;

-- name: hold_period
INSERT INTO unique_period (task, key, job, until)
SELECT :task, :unique, :id, created_at + :period FROM job WHERE id = :id AND :until = 2
ON CONFLICT DO UPDATE SET job = excluded.job, until = excluded.until WHERE until <= excluded.until - :period;

-- name: free_key
DELETE FROM unique_key WHERE at_start IN (0, 1) AND pk = :pk;

-- name: put_ready
INSERT INTO ready (queue, priority, kind, lane, last, first, ahead)
SELECT queue, priority, 0, '', seq, seq, 0 FROM job
WHERE id = :id AND state = 2 AND pk = (SELECT seq FROM counter);

-- name: put_due
INSERT INTO due (queue, due_at, seq, pk)
SELECT queue, due_at, seq, pk FROM job WHERE id = :id AND state = 1 AND pk = (SELECT seq FROM counter);

-- name: put_expiring
INSERT INTO expiring (expires_at, pk)
SELECT expires_at, pk FROM job
WHERE id = :id AND expires_at IS NOT NULL AND pk = (SELECT seq FROM counter);

-- name: announce_lane
INSERT OR IGNORE INTO lane (queue, priority, kind, lane)
SELECT queue, priority, 0, '' FROM job
WHERE id = :id AND state = 2 AND pk = (SELECT seq FROM counter);

-- name: mark_lane
-- For the claims of a queue whose lanes have groups. A lane without misplaced jobs is soon found to be so.
UPDATE lane SET stale = min(ifnull(stale, (SELECT seq FROM counter)), (SELECT seq FROM counter))
WHERE kind = 0 AND lane = '' AND priority = :priority
  AND queue = (
      SELECT pk FROM queue WHERE name = :queue AND (
          instr(options, CAST('"fair_by"' AS BLOB)) OR instr(options, CAST('"per_key"' AS BLOB))
          OR instr(options, CAST('"limits"' AS BLOB))
          OR instr(options, CAST('"per_task"' AS BLOB))
      )
  )
  AND EXISTS (SELECT 1 FROM job WHERE id = :id AND state = 2 AND pk = (SELECT seq FROM counter));

-- name: count_job
INSERT INTO tally (queue, state, count)
SELECT queue, state, 1 FROM job WHERE id = :id AND pk = (SELECT seq FROM counter)
ON CONFLICT (queue, state) DO UPDATE SET count = count + 1;

-- name: find_call
-- As bytes: the caller's connection may make something else of texts.
SELECT CAST(task AS BLOB), codec, body FROM job WHERE id = :id;

-- name: where_am_i
SELECT file FROM pragma_database_list WHERE name = 'main';

-- name: lock_file
-- Nothing is changed, but from here on nobody else writes: what is read next stays true.
UPDATE counter SET config = config WHERE one = 0;

-- name: find_run
SELECT job_now.pk, job_now.queue, job_now.task, ifnull(job_now.key, ''), job_now.state, job_now.fence,
    job_now.settled_fence, job_now.claimed_at, job_now.started_at, job_now.member, job_now.has_children,
    queue.options
FROM job_now JOIN queue ON queue.pk = job_now.queue WHERE job_now.id = :id;

-- name: split_run
-- The runs before this one stay together ...
INSERT INTO run (last, first, ahead, queue, claimant, claim_no, claimed_at, member)
SELECT :pk - 1, first, ahead, queue, claimant, claim_no, claimed_at, member FROM run
WHERE last = (SELECT min(last) FROM run WHERE last >= :pk) AND first < :pk;

-- name: shorten_run
-- ... and so do those behind it.
UPDATE run SET first = :pk + 1
WHERE last = (SELECT min(last) FROM run WHERE last >= :pk) AND last > :pk;

-- name: remove_run
DELETE FROM run WHERE last = :pk;

-- name: add_outcome
INSERT INTO outcome (pk, state, form, ended_at, fence, claimed_at, started_at, member, result)
VALUES (:pk, 4, :form, :now, :fence, :claimed_at, :started_at, :member, :result);

-- name: drop_payload
UPDATE job SET body = NULL, headers = iif(:form = 2, NULL, headers) WHERE pk = :pk;

-- name: add_ended
INSERT INTO ended (queue, state, ended_at, last, first) VALUES (:queue, 4, :now, :pk, :pk);

-- name: add_grave
INSERT INTO grave (ended_at, pk) VALUES (:now, :pk);

-- name: forget_history
UPDATE more SET progress = NULL, failures = 0 WHERE pk = :pk;

-- name: forget_failures
DELETE FROM failure WHERE job = :pk;

-- name: forget_log
DELETE FROM log WHERE job = :pk;

-- name: forget_checkpoints
DELETE FROM checkpoint WHERE job = :pk;

-- name: let_go
DELETE FROM held WHERE pk = :pk;

-- name: unpark
-- Gates that wait for a holder to go.
DELETE FROM parked WHERE queue = :queue AND wake_at IS NULL
  AND (kind, name) IN (VALUES ('queue', ''), ('task', :task), ('key', :key));

-- name: open_lanes
UPDATE lane SET parked = 0 WHERE queue = :queue AND key = :key AND parked = 1
  AND NOT EXISTS (SELECT 1 FROM parked WHERE queue = :queue AND kind = 'key' AND name = :key);

-- name: add_ended_parent
INSERT INTO ended_parent (parent, state, last_child) VALUES (:pk, 4, 0);

-- name: one_less_runs
INSERT INTO tally (queue, state, count) VALUES (:queue, 3, -1)
ON CONFLICT (queue, state) DO UPDATE SET count = count - 1;

-- name: one_more_completed
INSERT INTO tally (queue, state, count) VALUES (:queue, 4, 1)
ON CONFLICT (queue, state) DO UPDATE SET count = count + 1;

-- name: count_finished
INSERT INTO finished (queue, minute, completed, failed, dead, cancelled) VALUES (:queue, :minute, 1, 0, 0, 0)
ON CONFLICT (queue, minute) DO UPDATE SET completed = completed + 1;

-- name: set_schedule
UPDATE schedule SET next_at = :next_at WHERE name = :name AND (:version IS NULL OR version = :version);

-- name: set_started
INSERT INTO more (pk, started_fence, started_at) VALUES (:pk, :fence, :now)
ON CONFLICT DO UPDATE SET started_at = :now, started_fence = :fence WHERE started_fence IS NOT :fence;

-- name: set_progress
INSERT INTO more (pk, progress) VALUES (:pk, :value) ON CONFLICT DO UPDATE SET progress = excluded.progress;

-- name: add_line
INSERT OR IGNORE INTO log (job, fence, number, at, level, message)
VALUES (:pk, :fence, :number, :now, :level, :message);

-- name: cut_log
DELETE FROM log WHERE job = :pk AND (fence, number) <= (
    SELECT fence, number FROM log WHERE job = :pk ORDER BY fence DESC, number DESC LIMIT 1 OFFSET :kept
);

-- name: add_checkpoint
INSERT OR IGNORE INTO checkpoint (job, name, number, value)
SELECT :pk, :name, (SELECT count(*) FROM checkpoint WHERE job = :pk), :value;
