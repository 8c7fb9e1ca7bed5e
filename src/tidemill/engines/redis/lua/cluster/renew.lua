--# goes on
--# include core
-- Extends a lease that is held under this fence.
-- Takes: A.name, A.fence, A.ttl.
-- Answers: 1, or 0 if it is not held under this fence.

local raw = call('HGET', P .. 'lease', A.name)
local lease = raw and unpack_(raw)
if not lease or lease.f ~= A.fence or lease.u <= NOW then
    return 0
end
lease.u = NOW + A.ttl
call('HSET', P .. 'lease', A.name, pack(lease))
call('ZADD', P .. 'leaseend', lease.u, A.name)
return 1
