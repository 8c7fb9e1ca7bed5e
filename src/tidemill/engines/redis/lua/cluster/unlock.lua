--# goes on
--# include core
-- Ends a lease that is held under this fence.
-- Takes: A.name, A.fence.
-- Answers: 1, or 0 if it is not held under this fence.

local raw = call('HGET', P .. 'lease', A.name)
local lease = raw and unpack_(raw)
if not lease or lease.f ~= A.fence or lease.u <= NOW then
    return 0
end
call('HDEL', P .. 'lease', A.name)
call('ZREM', P .. 'leaseend', A.name)
return 1
