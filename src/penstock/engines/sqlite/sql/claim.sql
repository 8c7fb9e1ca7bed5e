-- Taking jobs.

-- name: admit
-- The member, and the claimant if it is known.
SELECT member.name, claimant.pk, claimant.number, claimant.retired_at, claimant.member
FROM member LEFT JOIN claimant ON claimant.id = ?1
WHERE member.id = ?2;

-- name: add_claimant
INSERT INTO claimant (id, member, number) VALUES (?, ?, ?) RETURNING pk;

-- name: number_claim
UPDATE claimant SET number = ? WHERE pk = ?;
