--# goes on
-- Writes something, so that WAIT on this connection covers all that is older. See copies.py.

return redis.call('HINCRBY', KEYS[1] .. 'n', 'mark', 1)
