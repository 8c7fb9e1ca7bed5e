--# goes on
--# include due
-- A.limit of each kind. Answers {jobs moved, wait}: -1 where nothing waits.

local limit, expired, due, next_at = A.limit, 0, 0, math.huge
local told, more = S.tell_children(limit)
local names = S.queue_names()
for _, name in ipairs(names) do
    if expired < limit then
        expired = expired + S.expire_due(name, limit - expired)
    end
end
for _, name in ipairs(names) do
    if due < limit then
        due = due + S.promote_due(name, limit - due)
    end
    next_at = math.min(next_at, S.next_due(name) or math.huge)
end
local told_after, more_after = S.tell_children(limit - told)
S.finish()
local wait = next_at < math.huge and math.max(0, next_at - NOW) or -1
if expired == limit or due == limit or more or more_after or handled >= HANDLED_LIMIT then
    wait = 0
end
return S.answer({ told + told_after + expired + due, wait })
