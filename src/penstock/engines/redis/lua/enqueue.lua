--# adds
--# include store
-- A.jobs: rows of new jobs; A.defaults: a queue with default options.
-- Answers for each 1 (created) or 0 (known). UNKNOWNPARENT: nothing was stored.

local list, answers = {}, {}
for n, row in ipairs(A.jobs) do
    list[n] = S.read_new(row)
end
local unknown = S.unknown_parent(list)
if unknown then
    return redis.error_reply('UNKNOWNPARENT ' .. S.hex(unknown))
end
for n, new in ipairs(list) do
    answers[n] = S.store(new) and 1 or 0
end
S.finish()
return answers
