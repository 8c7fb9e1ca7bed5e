--# reads
--# include core
-- Reads the leases that are in force.
-- Takes: nothing.
-- Answers: {{name, holder, fence, expires_at}, ...} in no order.

local all, answer = call('HGETALL', P .. 'lease'), {}
for n = 1, #all, 2 do
    local lease = unpack_(all[n + 1])
    if lease.u > NOW then
        answer[#answer + 1] = { all[n], lease.h, lease.f, lease.u }
    end
end
return answer
