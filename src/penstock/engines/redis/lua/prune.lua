--# include children
-- A.limit jobs, A.tombstone_age, A.minutes_age. Answers how many jobs and tombstones went.

local HOUR = 60 * MINUTE
local left = A.limit

local function go(ids, from)
    for _, member in ipairs(ids) do
        local id = member:sub(from)
        S.delete(id, S.job(id))
    end
    left = left - #ids
end

for _, name in ipairs(S.queue_names()) do
    local q = S.queue(name)
    for state = COMPLETED, CANCELLED do
        local key, age, count = P .. 'end/' .. name .. '/' .. state, q.ages[state - 3], q.counts[state - 3]
        if left > 0 and age >= 0 then
            go(call('ZRANGEBYSCORE', key, '-inf', S.int(NOW - age), 'LIMIT', 0, left), 9)
        end
        local excess = count >= 0 and call('ZCARD', key) - count or 0
        if left > 0 and excess > 0 then
            go(call('ZRANGE', key, 0, math.min(left, excess) - 1), 9)
        end
    end
end
if left > 0 then
    go(call('ZRANGEBYSCORE', P .. 'tomb', '-inf', S.int(NOW - A.tombstone_age), 'LIMIT', 0, left), 1)
end
S.tell_children(LIMIT)

for _, watch in ipairs(call('ZRANGEBYSCORE', P .. 'watches', '-inf', S.int(NOW), 'LIMIT', 0, LIMIT)) do
    call('HDEL', P .. 'w/' .. watch:sub(1, 16), watch:sub(17))
    call('ZREM', P .. 'watches', watch)
end
for _, claimant in ipairs(call('ZRANGEBYSCORE', P .. 'retired', '-inf', S.int(NOW - HOUR), 'LIMIT', 0, LIMIT)) do
    call('HDEL', P .. 'claimant', claimant)
    call('ZREM', P .. 'retired', claimant)
end
for _, name in ipairs(call('ZRANGEBYSCORE', P .. 'mins', '-inf', S.int(NOW - A.minutes_age - HOUR), 'LIMIT', 0, LIMIT)) do
    call('DEL', P .. 'min/' .. name)
    call('ZREM', P .. 'mins', name)
end
for _, gate in ipairs(call('ZRANGEBYSCORE', P .. 'ratelife', '-inf', S.int(NOW), 'LIMIT', 0, LIMIT)) do
    call('DEL', P .. 'rate/' .. gate)
    call('HDEL', P .. 'rates', gate)
    call('ZREM', P .. 'ratelife', gate)
end
S.finish()
return A.limit - left
