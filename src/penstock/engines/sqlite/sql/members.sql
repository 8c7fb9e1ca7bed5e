-- Members and their beats.

-- name: last_beat
SELECT since, beat_at, steady_since FROM member WHERE id = ?;

-- name: beat
INSERT OR REPLACE INTO member (id, name, info, since, beat_at, steady_since, gone_at)
VALUES (?, ?, ?, ?, ?, ?, ?);

-- name: draw_beat
UPDATE counter SET beat = beat + 1 RETURNING beat;

-- name: find_claimant
SELECT pk FROM claimant WHERE id = ?;

-- name: asked
SELECT job.id, job.fence FROM claimant JOIN job ON job.claimant = claimant.pk
WHERE claimant.member = ? AND job.state = 3 AND job.cancel_asked = 1
ORDER BY job.fence;

-- name: list
SELECT info, since, beat_at, steady_since,
    (SELECT count(*) FROM claimant JOIN job ON job.claimant = claimant.pk
     WHERE claimant.member = member.id AND job.state = 3)
FROM member ORDER BY name, id;
