-- What every operation may need. Times in microseconds.

-- name: draw_seq
UPDATE counter SET seq = seq + ? RETURNING seq;

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
