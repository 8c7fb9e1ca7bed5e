--# reads
--# include core
-- Reads the members and how many jobs each runs.
-- Takes: nothing.
-- Answers: {now, {{record, since, heartbeat_at, steady_since, running}, ...}} in no order.

local all, answer = call('HGETALL', P .. 'member'), {}
for n = 1, #all, 2 do
    local m, running = unpack_(all[n + 1]), 0
    for _, claimant in ipairs(call('SMEMBERS', P .. 'of/' .. all[n])) do
        running = running + call('SCARD', P .. 'run/' .. claimant)
    end
    answer[#answer + 1] = { m.info, m.si, m.at, m.ss, running }
end
return { NOW, answer }
