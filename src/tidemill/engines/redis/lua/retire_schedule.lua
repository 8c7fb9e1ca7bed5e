--# adds
--# include core
-- A.name, A.retired, A.next_at (false: none; nil: as it is), A.by. Answers 1, or 0 if there is none.

local raw = call('HGET', P .. 'schedule', A.name)
if not raw then
    return 0
end
local s = unpack_(raw)
if (s.r ~= nil) ~= A.retired then
    s.r = A.retired and NOW or nil
    if A.next_at ~= nil then
        s.n = A.next_at or nil
    end
    call('HSET', P .. 'schedule', A.name, pack(s))
    S.audit(A.by, A.retired and 'retire schedule' or 'bring back schedule', A.name)
end
return 1
