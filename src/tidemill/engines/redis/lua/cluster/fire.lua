--# adds
--# include store
-- Fires a schedule: stores the jobs of one tick and sets the next one, unless another call has done so before.
-- Takes: A.name; A.tick and A.before, which must be the stored `next_at` and `last_at`; A.version, nil for any; A.next_at, A.last_at,
-- A.line and A.kept, the new ones; A.requested (a caller requests a run now: a pause does not refuse it), A.by;
-- A.jobs as in store.lua, A.defaults.
-- Answers: of each job 1 (new), 0 (known) or the id of the job that it met; nil if it did not fire. UNKNOWNPARENT,
-- NOTUNIQUE: nothing changed.

local list = {}
for n, row in ipairs(A.jobs) do
    list[n] = S.read_new(row)
end
local raw = call('HGET', P .. 'schedule', A.name)
local s = raw and unpack_(raw)
if not s or s.r or (s.pa and not A.requested) or s.n ~= A.tick or s.l ~= A.before
    or (A.version and s.v ~= A.version) then
    return false
end
local refused = A.unique and S.foresee(list)
if refused then
    return redis.error_reply(refused)
end
local unknown = S.unknown_parent(list)
if unknown then
    return redis.error_reply('UNKNOWNPARENT ' .. S.hex(unknown))
end
s.n = A.next_at
if A.last_at then
    s.l, s.li, s.ke = A.last_at, A.line, A.kept
end
call('HSET', P .. 'schedule', A.name, pack(s))
local created = {}
for n, new in ipairs(list) do
    created[n] = S.store(new)
end
S.audit(A.by, 'run schedule', A.name)
S.finish()
return created
