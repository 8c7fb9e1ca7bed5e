--# goes on
--# include moves
--# include show
-- Reads jobs; the waiter gets a signal when those that have not ended do.
-- Takes: A.waiter, A.ttl, A.count ids as blobs.
-- Answers: the records, nil for unknown ids.

local answer, till = {}, NOW + A.ttl
for n = 1, A.count do
    local id = S.blob()
    local j = S.job(id)
    if j and j.st <= RUNNING then
        call('HSET', P .. 'w/' .. id, A.waiter, S.int(till))
        call('ZADD', P .. 'watches', till, id .. A.waiter)
        if not j.w then
            j.w = true
            S.save(id, j)
        end
    end
    answer[n] = j and S.show(id, j, true) or false
    if answer[n] then
        answer[n][#answer[n]] = {} -- its failures, which come last
    end
end
return answer
