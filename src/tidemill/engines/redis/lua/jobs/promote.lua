--# goes on
--# include due
-- Does what is due in all queues: dependents of ended parents move, expired jobs die, due jobs become ready.
-- Takes: A.limit, the most jobs of each kind.
-- Answers: {jobs moved, how long until the next job is due}; -1 where none is, 0 if there is more to do now.

local limit, expired, due, next_at = A.limit, 0, 0, math.huge
local moved, more = S.update_dependents(limit)
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
local moved_after, more_after = S.update_dependents(limit - moved)
S.finish()
local wait = next_at < math.huge and math.max(0, next_at - NOW) or -1
if expired == limit or due == limit or more or more_after or handled >= HANDLED_LIMIT then
    wait = 0
end
return S.answer({ moved + moved_after + expired + due, wait })
