-- What every operation may need. Times in microseconds.

-- name: draw_seq
UPDATE counter SET seq = max(seq, ifnull((SELECT max(pk) FROM job), 0)) + ? RETURNING seq;

-- name: next_seq
-- For new jobs: their rows hold it from now on, so that it is written only once (a page less to sync).
SELECT max(seq, ifnull((SELECT max(pk) FROM job), 0)) + 1 FROM counter;

-- name: keep_seq
-- Before a job goes whose pk is not behind the counter: its number must not come again.
UPDATE counter SET seq = (SELECT max(pk) FROM job) WHERE seq < ?;

-- name: draw_fences
-- Never below the clock in microseconds, so that a restored file does not repeat fences.
UPDATE counter SET fence = max(fence, ?) + ? RETURNING fence;

-- name: count
INSERT INTO tally (queue, state, count) VALUES (?, ?, ?)
ON CONFLICT (queue, state) DO UPDATE SET count = count + excluded.count;

-- name: count_finished
INSERT INTO finished (queue, minute, completed, failed, dead, cancelled) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (queue, minute) DO UPDATE SET
    completed = completed + excluded.completed,
    failed    = failed + excluded.failed,
    dead      = dead + excluded.dead,
    cancelled = cancelled + excluded.cancelled;

-- name: audit
INSERT INTO audit (at, by, action, target, detail) VALUES (?, ?, ?, ?, ?);

-- name: take_watches
DELETE FROM watch WHERE job = ? RETURNING waiter, until;
