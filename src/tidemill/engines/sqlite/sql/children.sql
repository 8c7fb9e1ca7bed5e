-- wait: a child waits for its parent. ended_parent: parents that ended and whose children are being updated.

-- name: add_wait
INSERT OR IGNORE INTO wait (parent, child) VALUES (?, ?);

-- name: mark_parent
INSERT INTO more (pk, has_children) VALUES (?, 1) ON CONFLICT DO UPDATE SET has_children = 1;

-- name: add_ended_parent
INSERT INTO ended_parent (parent, state, last_child) VALUES (?, ?, 0);

-- name: next_ended_parent
SELECT pk, parent, state, last_child FROM ended_parent ORDER BY pk LIMIT 1;

-- name: next_children
SELECT child FROM wait WHERE parent = ? AND child > ? ORDER BY child LIMIT ?;

-- name: updated_through
UPDATE ended_parent SET last_child = ? WHERE pk = ?;

-- name: forget_ended_parent
DELETE FROM ended_parent WHERE pk = ?;

-- name: forget_wait
DELETE FROM wait WHERE parent = ? AND child = ?;

-- name: forget_child
DELETE FROM wait WHERE child = ?;

-- name: set_waits
UPDATE more SET waits_for = ? WHERE pk = ?;
