--# reads
--# include core
-- A.due: only those not paused whose time has come. Answers {{name, timing, job, missed, next_at, last_at, paused,
-- version}, ...} in no order.

local all, answer = call('HGETALL', P .. 'schedule'), {}
for n = 1, #all, 2 do
    local s = unpack_(all[n + 1])
    if not A.due or (not s.pa and s.n and s.n <= NOW) then
        answer[#answer + 1] = { all[n], s.t, s.j, s.mi, s.n or false, s.l or false, s.pa and 1 or 0, s.v }
    end
end
return answer
