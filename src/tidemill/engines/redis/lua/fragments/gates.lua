--# at need
--# include moves
-- Gates (model.gate): how many starts each admits now, and the log of starts of a rate.
--
-- A limit is {concurrency, count, window}, -1 for none. A log is a zset of '<end>:<starts>' by the end of its step. So a
-- change of the window needs no rewriting. An entry stays for START_DELAY after it counts: it tells whether a gate is
-- pressed. The hash `rates` has the sum of each log.

local STEPS, START_DELAY, FAR = 1000, 30000, 9000000000000000
local FREE, PRESSED, REPEATED = 0, 1, 2 -- as in model.starts

local function starts_of(entry)
    return tonumber(entry:match(':(%d+)$'))
end

-- How many of its permits count within a window that ends now.
function S.used(gate, window)
    local sum = tonumber(call('HGET', P .. 'rates', gate) or 0)
    if sum > 0 then
        for _, entry in ipairs(call('ZRANGEBYSCORE', P .. 'rate/' .. gate, '-inf', S.int(NOW - window))) do
            sum = sum - starts_of(entry)
        end
    end
    return sum
end

-- When a rate that is used up admits a start again.
local function opens_at(gate, limit, used)
    local at, left = 0, used
    while true do
        local some = call('ZRANGEBYSCORE', P .. 'rate/' .. gate, '(' .. S.int(NOW - limit[3]), '+inf', 'WITHSCORES',
            'LIMIT', at, 100)
        for n = 1, #some, 2 do
            left = left - starts_of(some[n])
            if left < limit[2] then
                return tonumber(some[n + 1]) + limit[3]
            end
        end
        if #some == 0 then
            return NOW + 1
        end
        at = at + 100
    end
end

-- {room, wake}: wake is when time alone opens it, nil if only a holder's end does.
function S.room(gate, limit, held)
    local room = math.huge
    if limit[1] >= 0 then
        room = limit[1] - held
    end
    if room > 0 and limit[2] >= 0 then
        local used = S.used(gate, limit[3])
        if used >= limit[2] then
            return { room = 0, wake = opens_at(gate, limit, used) }
        end
        room = math.min(room, limit[2] - used)
    end
    return { room = room }
end

-- `starts` permits of a rate are taken now, for good.
function S.log_starts(gate, limit, starts)
    local key, window = P .. 'rate/' .. gate, limit[3]
    local sum = S.used(gate, window + START_DELAY) + starts
    call('ZREMRANGEBYSCORE', key, '-inf', S.int(NOW - window - START_DELAY))
    local length = math.max(1, math.floor(window / STEPS))
    local step_end = S.int(NOW - NOW % length + length)
    for _, entry in ipairs(call('ZRANGEBYSCORE', key, step_end, step_end)) do
        starts = starts + starts_of(entry)
        call('ZREM', key, entry)
    end
    call('ZADD', key, step_end, step_end .. ':' .. S.int(starts))
    call('HSET', P .. 'rates', gate, S.int(sum))
    call('ZADD', P .. 'ratelife', S.int(tonumber(step_end) + window + START_DELAY), gate)
end

-- The gate of a queue, of a task in it, of a key in it, measured once a call; nil where there is no limit.
local measured = {}

local function measure(gate, limit, held)
    local found = measured[gate]
    if not found then
        found = S.room(gate, limit, held())
        found.limit, found.held, found.taken = limit, held, 0
        measured[gate] = found
    end
    return found
end

function S.own_gate(name, q)
    return q.own and measure(name .. '/q/', q.own, function() return call('ZCARD', P .. 'runq/' .. name) end)
end

function S.task_gate(name, q, task)
    local limit = q.tasks[task]
    return limit and measure(name .. '/t/' .. task, limit, function()
        return call('SCARD', P .. 'held/' .. name .. '/t/' .. task)
    end)
end

function S.key_gate(name, q, key)
    local limit = S.key_limit(q, key)
    return limit and (limit[1] >= 0 or limit[2] >= 0) and measure(name .. '/k/' .. key, limit, function()
        return call('SCARD', P .. 'held/' .. name .. '/k/' .. key)
    end)
end

function S.take_permit(gate)
    if gate then
        gate.room = gate.room - 1
        gate.taken = gate.taken + 1
    end
end

-- Write the starts that were taken in this call, and measure again what that filled up. The holders are written.
local hurried = {} -- queues with a pressed gate that gave a permit

function S.log_taken()
    for name, gate in pairs(measured) do
        if gate.taken > 0 and gate.limit[2] >= 0 then
            S.log_starts(name, gate.limit, gate.taken)
            if S.used(name, gate.limit[3] + START_DELAY) > gate.limit[2] then
                hurried[name:match('^[^/]*')] = true
            end
            gate.wake = S.room(name, gate.limit, gate.held()).wake
        end
    end
end

-- {queue, rules, how pressed} of the queues of jobs ({id, record}) in which jobs are under a rate.
function S.starts(jobs, repeated)
    local seen, list = {}, {}
    for _, job in ipairs(jobs) do
        local name = job[2].q
        if not seen[name] then
            seen[name] = true
            local rules = S.queue(name).starts
            if rules then
                list[#list + 1] = { name, rules, repeated and REPEATED or hurried[name] and PRESSED or FREE }
            end
        end
    end
    return list
end

-- A key's gate is full: its lane is not scanned until a holder goes or its rate opens.
function S.park(name, key, gate, priority, group)
    local member = string.char(48 + priority) .. group
    for _, kind in ipairs(S.kinds(name)) do
        if call('ZREM', P .. 'open/' .. name .. '/' .. kind, member) == 1 then
            call('SADD', P .. 'parked/' .. name .. '/' .. key, kind .. member)
        end
    end
    call('ZADD', P .. 'park/' .. name, gate.wake and S.int(gate.wake) or '+inf', key)
end

-- Lanes of keys whose rate has opened are scanned again.
function S.unpark_due(name)
    for _, key in ipairs(call('ZRANGEBYSCORE', P .. 'park/' .. name, '-inf', S.int(NOW), 'LIMIT', 0, LIMIT)) do
        S.unpark(name, key)
    end
end

-- When the next parked key's rate opens, or nil.
function S.next_wake(name)
    local some = call('ZRANGEBYSCORE', P .. 'park/' .. name, '(' .. S.int(NOW), S.int(FAR), 'WITHSCORES', 'LIMIT', 0, 1)
    return some[2] and tonumber(some[2])
end
