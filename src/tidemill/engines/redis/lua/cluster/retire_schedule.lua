--# adds
--# include core
-- Retires a schedule that no code declares any more, or takes that back.
-- Takes: A.name, A.retired, A.next_at (false: none; nil: leave it; left too if A.version is not the schedule's), A.by.
-- Answers: 1, or 0 if there is no such schedule.

local raw = call('HGET', P .. 'schedule', A.name)
if not raw then
    return 0
end
local s = unpack_(raw)
if (s.r ~= nil) ~= A.retired then
    s.r = A.retired and NOW or nil
    if A.next_at ~= nil and (A.version or s.v) == s.v then
        s.n = A.next_at or nil
    end
    call('HSET', P .. 'schedule', A.name, pack(s))
    S.audit(A.by, A.retired and 'retire schedule' or 'bring back schedule', A.name)
end
return 1
