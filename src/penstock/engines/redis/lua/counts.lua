--# reads
--# include core
-- A.back: how many minutes before the present one count too. Answers {{queue, 7 counts, 4 sums}, ...}.

local first, tally, sums, answer = NOW - NOW % MINUTE - A.back * MINUTE, {}, {}, {}
local hour = 60 * MINUTE
local all = call('HGETALL', P .. 'tally')
for n = 1, #all, 2 do
    tally[all[n]] = tonumber(all[n + 1])
end
for _, name in ipairs(call('ZRANGEBYSCORE', P .. 'mins', S.int(first - first % hour), S.int(NOW))) do
    local queue, start = name:match('^(.*)/(%d+)$')
    local of = sums[queue] or {}
    sums[queue] = of
    local fields = call('HGETALL', P .. 'min/' .. name)
    for n = 1, #fields, 2 do
        local minute, kind = fields[n]:match('^(%d+)/(.*)$')
        local at = tonumber(start) + tonumber(minute) * MINUTE
        if at >= first and at <= NOW then
            of[kind] = (of[kind] or 0) + tonumber(fields[n + 1])
        end
    end
end
for _, name in ipairs(S.queue_names()) do
    local row, of = { name }, sums[name] or {}
    for state = 0, 6 do
        row[#row + 1] = tally[name .. '/' .. state] or 0
    end
    for _, kind in ipairs({ 'completed', 'failed', 'dead', 'cancelled' }) do
        row[#row + 1] = of[kind] or 0
    end
    answer[#answer + 1] = row
end
return answer
