--# reads
--# include core
-- Reads what operators have changed, newest first.
-- Takes: A.before (a number, or nil), A.limit.
-- Answers: {{number, at, by, action, target, detail}, ...}.

local last = call('LLEN', P .. 'audit')
if A.before then
    last = math.min(last, A.before - 1)
end
local answer = {}
if last > 0 then
    local first = math.max(1, last - A.limit + 1)
    local some = call('LRANGE', P .. 'audit', first - 1, last - 1)
    for n = #some, 1, -1 do
        local entry = unpack_(some[n])
        answer[#answer + 1] = { first + n - 1, entry[1], entry[2], entry[3], entry[4], entry[5] }
    end
end
return answer
