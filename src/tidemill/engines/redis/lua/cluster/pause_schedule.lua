--# goes on
--# include core
-- Pauses a schedule, or lets it go on.
-- Takes: A.name, A.paused, A.next_at (false: none; nil: leave it; left too if A.version is not the schedule's), A.by.
-- Answers: 1, or 0 if there is no such schedule.

local raw = call('HGET', P .. 'schedule', A.name)
if not raw then
    return 0
end
local s = unpack_(raw)
if (s.pa or false) ~= A.paused then
    s.pa = A.paused or nil
    if A.next_at ~= nil and (A.version or s.v) == s.v then
        s.n = A.next_at or nil
    end
    call('HSET', P .. 'schedule', A.name, pack(s))
    S.audit(A.by, A.paused and 'pause schedule' or 'resume schedule', A.name)
end
return 1
