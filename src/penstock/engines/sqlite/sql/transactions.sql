-- Enqueue inside a transaction of the caller's own, with named parameters. SQLite's julianday has
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

-- name: put_ready
INSERT INTO ready (queue, priority, suspect, lane, last, first, ahead)
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
INSERT OR IGNORE INTO lane (queue, priority, suspect, lane)
SELECT queue, priority, 0, '' FROM job
WHERE id = :id AND state = 2 AND pk = (SELECT seq FROM counter);

-- name: mark_lane
-- For the claims of a queue whose lanes have groups. A lane without misplaced jobs is soon found to be so.
UPDATE lane SET stale = min(ifnull(stale, (SELECT seq FROM counter)), (SELECT seq FROM counter))
WHERE suspect = 0 AND lane = '' AND priority = :priority
  AND queue = (
      SELECT pk FROM queue WHERE name = :queue AND (
          instr(options, CAST('"fair_by"' AS BLOB)) OR instr(options, CAST('"per_key"' AS BLOB))
          OR instr(options, CAST('"per_task"' AS BLOB))
      )
  )
  AND EXISTS (SELECT 1 FROM job WHERE id = :id AND state = 2 AND pk = (SELECT seq FROM counter));

-- name: count_job
INSERT INTO tally (queue, state, count)
SELECT queue, state, 1 FROM job WHERE id = :id AND pk = (SELECT seq FROM counter)
ON CONFLICT (queue, state) DO UPDATE SET count = count + 1;
