-- wait: child waits for parent. ripple: parents that ended and whose children are being told.

-- name: add_wait
INSERT OR IGNORE INTO wait (parent, child) VALUES (?, ?);

-- name: mark_parent
INSERT INTO more (pk, has_children) VALUES (?, 1) ON CONFLICT DO UPDATE SET has_children = 1;

-- name: add_ripple
INSERT INTO ripple (parent, state, told) VALUES (?, ?, 0);

-- name: next_ripple
SELECT pk, parent, state, told FROM ripple ORDER BY pk LIMIT 1;

-- name: next_children
SELECT child FROM wait WHERE parent = ? AND child > ? ORDER BY child LIMIT ?;

-- name: told_through
UPDATE ripple SET told = ? WHERE pk = ?;

-- name: end_ripple
DELETE FROM ripple WHERE pk = ?;

-- name: forget_wait
DELETE FROM wait WHERE parent = ? AND child = ?;

-- name: forget_child
DELETE FROM wait WHERE child = ?;

-- name: set_waits
UPDATE more SET waits_for = ? WHERE pk = ?;
