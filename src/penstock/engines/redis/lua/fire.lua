--# adds
--# include store
-- A.name, A.tick, A.before, A.next_at, A.last_at, A.asked, A.by, A.jobs, A.defaults. Answers 1 if it fired. UNKNOWNPARENT: nothing changed.

local list = {}
for n, row in ipairs(A.jobs) do
    list[n] = S.read_new(row)
end
local raw = call('HGET', P .. 'schedule', A.name)
local s = raw and unpack_(raw)
if not s or s.r or (s.pa and not A.asked) or s.n ~= A.tick or s.l ~= A.before then
    return 0
end
local unknown = S.unknown_parent(list)
if unknown then
    return redis.error_reply('UNKNOWNPARENT ' .. S.hex(unknown))
end
s.n = A.next_at
s.l = A.last_at or s.l
call('HSET', P .. 'schedule', A.name, pack(s))
for _, new in ipairs(list) do
    S.store(new)
end
S.audit(A.by, 'run schedule', A.name)
S.finish()
return 1
