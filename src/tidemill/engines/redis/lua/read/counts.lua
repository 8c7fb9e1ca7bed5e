--# reads
--# include ended
--# include lanes
-- Counts jobs by queue and state, and what ended lately.
-- Takes: A.back, how many minutes before the present one are counted too; A.heads, the most lanes of a queue.
-- Answers: {first and end of that span, names of queues, tally, since when the oldest of the first jobs of each queue's lanes
-- is ready or -1, what ended (see ended.lua), where to go on}.

-- Of many heads those that became ready first by their numbers are read: a released job keeps its number, so it need not be
-- the very first. (All records of 1,000 heads took the server 15 ms.)
local READ = 20

local names, oldest = call('HKEYS', P .. 'q'), {}
for n, name in ipairs(names) do
    local heads, left = {}, A.heads
    for _, kind in ipairs(S.kinds(name)) do
        for _, lane in ipairs(left > 0 and call('ZRANGE', P .. 'lanes/' .. name .. '/' .. kind, 0, left - 1) or {}) do
            left = left - 1
            local key = S.lane_key(name, lane:byte(1) - 48, kind, lane:sub(2))
            local head = call('ZRANGE', key, 0, 0, 'WITHSCORES')
            if head[1] then
                heads[#heads + 1] = { tonumber(head[2]), head[1] }
            end
        end
    end
    local moment = -1
    table.sort(heads, function(a, b) return a[1] < b[1] end)
    for at = 1, math.min(READ, #heads) do
        local ready = S.job(heads[at][2]).r or -1
        if ready >= 0 and (moment < 0 or ready < moment) then
            moment = ready
        end
    end
    oldest[n] = moment
end
local first, last = NOW - NOW % MINUTE - A.back * MINUTE, NOW + 1
local found = S.ended(first, last, true, 0)
return { first, last, names, call('HGETALL', P .. 'tally'), oldest, found[1], found[2] }
