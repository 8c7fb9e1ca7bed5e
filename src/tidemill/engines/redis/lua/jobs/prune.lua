--# goes on
--# include dependents
-- Deletes what retention no longer keeps: ended jobs, tombstones, old watches, claimants, counts, leases, rate logs and unique
-- keys of periods.
-- Takes: A.limit jobs, A.tombstone_age, A.minutes_age.
-- Answers: {how many jobs and tombstones were deleted, 1 if there is more}.

local HOUR = 60 * MINUTE
local left, more = A.limit, false

-- Members of a zset whose time has come, at most LIMIT of them.
local function past(key, till)
    local some = call('ZRANGEBYSCORE', P .. key, '-inf', S.int(till), 'LIMIT', 0, LIMIT)
    more = more or #some == LIMIT
    return some
end

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
S.update_dependents(LIMIT)

for _, watch in ipairs(past('watches', NOW)) do
    call('HDEL', P .. 'w/' .. watch:sub(1, 16), watch:sub(17))
    call('ZREM', P .. 'watches', watch)
end
for _, claimant in ipairs(past('retired', NOW - HOUR)) do
    call('HDEL', P .. 'claimant', claimant)
    call('ZREM', P .. 'retired', claimant)
end
for _, name in ipairs(past('mins', NOW - A.minutes_age - HOUR)) do
    call('DEL', P .. 'min/' .. name)
    call('ZREM', P .. 'mins', name)
end
for _, name in ipairs(past('stats', NOW - A.minutes_age - HOUR)) do
    call('DEL', P .. 'st/' .. name, P .. 'tt/' .. name)
    call('ZREM', P .. 'stats', name)
end

for _, field in ipairs(past('uniqe', NOW)) do
    call('HDEL', P .. 'uniqp', field)
    call('ZREM', P .. 'uniqe', field)
end

for _, name in ipairs(past('leaseend', NOW)) do
    call('HDEL', P .. 'lease', name)
    call('ZREM', P .. 'leaseend', name)
end

-- The window of a gate's rate as it is now, 0 for none: it may be longer than when the log was written.
local function window_of(gate)
    local name, kind, rest = gate:match('^([^/]*)/(.)/(.*)$')
    local q = S.queue(name)
    local limit = kind == 'q' and q.own or kind == 't' and q.tasks[rest] or kind == 'k' and S.key_limit(q, rest)
    return limit and math.max(0, limit[3]) or 0
end

for _, gate in ipairs(past('ratelife', NOW)) do
    local last = call('ZRANGE', P .. 'rate/' .. gate, -1, -1, 'WITHSCORES')
    local counts_until = last[2] and tonumber(last[2]) + window_of(gate) + 30000 or 0 -- START_DELAY of gates.lua
    if counts_until > NOW then
        call('ZADD', P .. 'ratelife', counts_until, gate)
    else
        call('DEL', P .. 'rate/' .. gate)
        call('HDEL', P .. 'rates', gate)
        call('ZREM', P .. 'ratelife', gate)
    end
end
S.finish()
return S.answer({ A.limit - left, (left <= 0 or more) and 1 or 0 })
