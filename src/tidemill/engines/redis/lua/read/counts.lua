--# reads
--# include ended
--# include lanes
-- Counts jobs by queue and state, and what ended lately.
-- Takes: A.back, how many minutes before the present one are counted too; A.heads, the most lanes of a queue.
-- Answers: {first and end of that span, names of queues, tally, since when the oldest of the first jobs of each queue's lanes
-- is ready or -1, what ended (see ended.lua), where to go on}.

local names, oldest = call('HKEYS', P .. 'q'), {}
for n, name in ipairs(names) do
    local ids, left = {}, A.heads
    for suspect = 0, 1 do
        for _, lane in ipairs(left > 0 and call('ZRANGE', P .. 'lanes/' .. name .. '/' .. suspect, 0, left - 1) or {}) do
            left = left - 1
            ids[#ids + 1] = call('ZRANGE', S.lane_key(name, lane:byte(1) - 48, suspect, lane:sub(2)), 0, 0)[1]
        end
    end
    local moment = -1
    for _, id in ipairs(ids) do
        local ready = S.job(id).r or -1
        if ready >= 0 and (moment < 0 or ready < moment) then
            moment = ready
        end
    end
    oldest[n] = moment
end
local first, last = NOW - NOW % MINUTE - A.back * MINUTE, NOW + 1
local found = S.ended(first, last, true, 0)
return { first, last, names, call('HGETALL', P .. 'tally'), oldest, found[1], found[2] }
