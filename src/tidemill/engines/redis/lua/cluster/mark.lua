--# goes on
-- Writes something, so that WAIT on this connection covers all earlier writes. See copies.py.
-- Takes: nothing. Answers: a number that grows.

return redis.call('HINCRBY', KEYS[1] .. 'n', 'mark', 1)
