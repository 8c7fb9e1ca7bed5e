--# goes on
--# include core
-- Takes a lease, or extends one that the same holder has.
-- Takes: A.name, A.holder, A.ttl.
-- Answers: {fence, expires_at}, or nil if another holds it. A lease is stored as {h holder, f fence, u until}.

local raw = call('HGET', P .. 'lease', A.name)
local lease = raw and unpack_(raw)
if lease and lease.u > NOW then
    if lease.h ~= A.holder then
        return false
    end
else
    lease = { h = A.holder, f = S.fences(1) }
end
lease.u = NOW + A.ttl
call('HSET', P .. 'lease', A.name, pack(lease))
call('ZADD', P .. 'leaseend', lease.u, A.name) -- for prune
return { lease.f, lease.u }
