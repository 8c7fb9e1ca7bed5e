-- Members and their heartbeats.

-- name: last_heartbeat
SELECT since, heartbeat_at, steady_since, stats FROM member WHERE id = ?;

-- name: heartbeat
INSERT OR REPLACE INTO member (id, name, info, since, heartbeat_at, steady_since, gone_at, stats)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);

-- name: draw_heartbeat
UPDATE counter SET heartbeat = heartbeat + 1 RETURNING heartbeat, options;

-- name: find_claimant
SELECT pk FROM claimant WHERE id = ?;

-- name: stop_requests
SELECT job.id, job.pk + run.ahead FROM claimant
CROSS JOIN run ON run.claimant = claimant.pk
CROSS JOIN more ON more.pk BETWEEN run.first AND run.last AND more.cancel_requested = 1
CROSS JOIN job ON job.pk = more.pk
WHERE claimant.member = ? ORDER BY 2;

-- name: list
SELECT info, since, heartbeat_at, steady_since,
    (SELECT ifnull(sum(run.last - run.first + 1), 0) FROM claimant JOIN run ON run.claimant = claimant.pk
     WHERE claimant.member = member.id)
FROM member ORDER BY name, id;
