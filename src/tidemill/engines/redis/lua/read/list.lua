--# reads
--# include show
--# include lanes
-- Reads jobs of some states in their order, from a position on. A position is a key, never a rank: a rank moves when
-- something before it goes.
-- Takes: A.states; A.names (queues, in order; nil: all); A.state, A.queue and A.key: the position of the last job seen, or
-- nil; A.size, the most jobs; A.task: dead jobs of this task only; A.group: those of this dead-letter group (task, zero byte,
-- fingerprint); A.since and A.till: of finished and scheduled jobs, the range of their times; A.priority: of ready jobs;
-- A.text: with their bodies.
-- Answers: rows, see show.lua.

local rows, first = {}, A.key ~= nil

local function add(id)
    local raw = call('HGET', P .. 'job', id)
    if raw then
        rows[#rows + 1] = S.show(id, S.decode(raw), false, A.text)
    end
end

-- How many members stand before (score, member) in a zset: equal scores are ordered by member.
local function rank_of(key, score, member)
    local low, high = call('ZCOUNT', key, '-inf', '(' .. score), call('ZCOUNT', key, '-inf', score)
    while low < high do
        local middle = math.floor((low + high) / 2)
        if S.less(call('ZRANGE', key, middle, middle)[1], member) then
            low = middle + 1
        else
            high = middle
        end
    end
    return low
end

-- The ranks of a zset that lie in the range of time: from the first, before the second.
local function range(key)
    return A.since and call('ZCOUNT', key, '-inf', '(' .. S.int(A.since)) or 0,
        A.till and call('ZCOUNT', key, '-inf', '(' .. S.int(A.till)) or call('ZCARD', key)
end

local function by_birth(key, after)
    local ids = call('ZRANGEBYSCORE', key, after and '(' .. S.int(after[1]) or '-inf', '+inf', 'LIMIT', 0, A.size - #rows)
    for _, id in ipairs(ids) do
        add(id)
    end
end

local function scheduled(key, after)
    local start = after and rank_of(key, S.int(after[1]), S.be8(after[2] + 1)) or 0
    local from, till = range(key)
    start = math.max(start, from)
    for _, member in ipairs(call('ZRANGE', key, start, math.min(till, start + A.size - #rows) - 1)) do
        add(member:sub(9))
    end
end

local function finished(key, after)
    local stop = after and rank_of(key, S.int(after[1]), S.be8(after[2])) or call('ZCARD', key)
    local from, till = range(key)
    stop = math.min(stop, till)
    if stop > from then
        local some = call('ZRANGE', key, math.max(from, stop - (A.size - #rows)), stop - 1)
        for n = #some, 1, -1 do
            add(some[n]:sub(9))
        end
    end
end

-- Of one priority and kind, from a group on: group after group, by seq.
local function lanes(name, priority, kind, group, seq)
    local from = '[' .. string.char(48 + priority) .. (group or '')
    while #rows < A.size do
        local members = call('ZRANGEBYLEX', P .. 'lanes/' .. name .. '/' .. kind, from,
            '(' .. string.char(49 + priority), 'LIMIT', 0, 50)
        for _, member in ipairs(members) do
            local here = member:sub(2)
            local after = here == group and seq and '(' .. S.int(seq) or '-inf'
            if #rows < A.size then
                local lane = S.lane_key(name, priority, kind, here)
                for _, id in ipairs(call('ZRANGEBYSCORE', lane, after, '+inf', 'LIMIT', 0, A.size - #rows)) do
                    add(id)
                end
            end
        end
        if #members < 50 then
            return
        end
        from = '(' .. members[#members]
    end
end

-- A position of a ready job is {priority, kind as a number, lane, seq}, where lane is the group, behind task and byte 30 if it
-- stands aside.
local function ready(name, after)
    local at, group
    if after then
        at, group = tostring(after[2]), after[3]
        if after[2] > 1 then
            local last = group:find('\30', 1, true) or 0
            at, group = at .. group:sub(1, last), group:sub(last + 1)
        end
    end
    local kinds = S.kinds(name)
    for priority = A.priority or after and after[1] or 0, A.priority or 10 do
        for _, kind in ipairs(kinds) do
            local here = after and priority == after[1]
            if #rows < A.size and not (here and S.less(kind, at)) then
                local same = here and kind == at
                lanes(name, priority, kind, same and group or nil, same and after[4] or nil)
            end
        end
    end
end

local function walk(state, name, after)
    if state == 0 then
        by_birth(P .. 'blk/' .. name, after)
    elseif state == 1 then
        scheduled(P .. 'due/' .. name, after)
    elseif state == 2 then
        ready(name, after)
    elseif state == 3 then
        by_birth(P .. 'runq/' .. name, after)
    elseif A.group then
        finished(P .. 'group/' .. name .. '/' .. A.group, after)
    elseif state == 5 and A.task then
        finished(P .. 'dead/' .. name .. '/' .. A.task, after)
    else
        finished(P .. 'end/' .. name .. '/' .. state, after)
    end
end

local names = A.names
if not names then
    names = call('HKEYS', P .. 'q')
    table.sort(names, S.less)
end
for _, state in ipairs(A.states) do
    if not (first and state < A.state) then
        for _, name in ipairs(names) do
            local here = first and state == A.state
            if #rows < A.size and not (here and S.less(name, A.queue)) then
                walk(state, name, here and name == A.queue and A.key or nil)
            end
        end
    end
end
return rows
