--# reads
--# include core
-- Reads the schedules.
-- Takes: nothing.
-- Answers: {{name, timing, job, missed, overlap, waiting, keep, source, declared_at, next_at, last_at, line, kept,
-- paused, retired_at, version}, ...} in no order.

local all, answer = call('HGETALL', P .. 'schedule'), {}
for n = 1, #all, 2 do
    local s = unpack_(all[n + 1])
    answer[#answer + 1] = {
        all[n], s.t, s.j, s.mi, s.o, s.w, s.k or false, s.so, s.d, s.n or false, s.l or false, s.li or '[]', s.ke or '[]',
        s.pa and 1 or 0, s.r or false, s.v,
    }
end
return answer
