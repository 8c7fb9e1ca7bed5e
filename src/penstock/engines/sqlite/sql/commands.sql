-- What people do to jobs, and what runs write about themselves.

-- name: ask_to_stop
UPDATE job SET cancel_asked = 1 WHERE pk = ?;

-- name: member_of
SELECT member FROM claimant WHERE pk = ?;

-- name: start_again
UPDATE job SET attempts = 0, crashes = 0, losses = 0, cancel_asked = 0, replays = replays + 1,
    replay_token = ?, result = NULL, progress = NULL, ended_at = NULL, due_at = NULL, expires_at = NULL
WHERE pk = ?;

-- name: set_started
UPDATE job SET started_at = ifnull(started_at, ?) WHERE pk = ?;

-- name: set_progress
UPDATE job SET progress = ? WHERE pk = ?;

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
