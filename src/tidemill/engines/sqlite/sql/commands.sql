-- What people do to jobs, and what runs write about themselves.

-- name: ask_to_stop
INSERT INTO more (pk, cancel_requested) VALUES (?, 1) ON CONFLICT DO UPDATE SET cancel_requested = 1;

-- name: member_of
SELECT member FROM claimant WHERE pk = ?;

-- name: start_again
UPDATE job SET attempts = 0, crashes = 0, snoozes = 0, due_at = NULL, expires_at = NULL WHERE pk = ?;

-- name: edit
UPDATE job SET body = ?, codec = ?, key = ? WHERE pk = ?;

-- name: count_replay
INSERT INTO more (pk, replays, replay_token) VALUES (?, 1, ?)
ON CONFLICT DO UPDATE SET lost_runs = 0, cancel_requested = 0, progress = NULL, replays = replays + 1,
    replay_token = excluded.replay_token;

-- name: set_started
-- The first time of this run stays; that of an earlier one does not.
INSERT INTO more (pk, started_fence, started_at) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET
    started_at = CASE WHEN started_fence = excluded.started_fence THEN started_at ELSE excluded.started_at END,
    started_fence = excluded.started_fence;

-- name: set_progress
INSERT INTO more (pk, progress) VALUES (?, ?) ON CONFLICT DO UPDATE SET progress = excluded.progress;

-- name: add_line
INSERT OR IGNORE INTO log (job, fence, number, at, level, message) VALUES (?, ?, ?, ?, ?, ?);

-- name: cut_log
-- Keep the newest lines. The inner query finds the first one too many, by the primary key.
DELETE FROM log WHERE job = ?1 AND (fence, number) <= (
    SELECT fence, number FROM log WHERE job = ?1 ORDER BY fence DESC, number DESC LIMIT 1 OFFSET ?2
);

-- name: add_checkpoint
INSERT OR IGNORE INTO checkpoint (job, name, number, value)
SELECT ?1, ?2, (SELECT count(*) FROM checkpoint WHERE job = ?1), ?3;

-- name: add_watch
INSERT INTO watch (job, waiter, until) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET until = max(until, excluded.until);

-- name: forget_due_time
UPDATE job SET due_at = NULL WHERE pk = ?;
