--# reads
--# include core
-- Minute counts from A.first to before A.last: {queue, minute, kind, count, ...}

local answer, hour = {}, 60 * MINUTE
for _, name in ipairs(call('ZRANGEBYSCORE', P .. 'mins', S.int(A.first - A.first % hour), S.int(A.last))) do
    local queue, start = name:match('^(.*)/(%d+)$')
    if not A.queue or A.queue == queue then
        local fields = call('HGETALL', P .. 'min/' .. name)
        for n = 1, #fields, 2 do
            local minute, kind = fields[n]:match('^(%d+)/(.*)$')
            local at = tonumber(start) + tonumber(minute) * MINUTE
            if at >= A.first and at < A.last then
                answer[#answer + 1] = { queue, at, kind, tonumber(fields[n + 1]) }
            end
        end
    end
end
return answer
