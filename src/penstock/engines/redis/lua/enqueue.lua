--# adds
--# include store
-- A.jobs: rows of new jobs; A.defaults: a queue with default options.
-- Answers for each 1 (created) or 0 (known). UNKNOWNPARENT: nothing was stored.

local list, answers, ids, fresh = {}, {}, {}, 0
for n, row in ipairs(A.jobs) do
    list[n] = S.read_new(row)
    ids[n] = list[n].id
end
S.fetch(ids)
local unknown = S.unknown_parent(list)
if unknown then
    return redis.error_reply('UNKNOWNPARENT ' .. S.hex(unknown))
end
for _, id in ipairs(ids) do
    fresh = fresh + (S.known(id) and 0 or 1)
end
if fresh > 0 then
    S.draw(fresh)
end
S.gather()
for n, new in ipairs(list) do
    answers[n] = S.store(new) and 1 or 0
end
S.flush()
S.finish()
return answers
